"""AgentDojo against kiso: what a model that is completely taken over can do."""
