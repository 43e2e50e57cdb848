"""AgentDojo against kiso: the effects that a completely compromised model can cause."""
