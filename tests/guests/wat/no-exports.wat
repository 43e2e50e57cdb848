;; A component without exports. There is nothing that could be called; `kiso skill add` must say so.
(component)
