"""Routes by noun. Each is a plain function over the services; who may come in was settled at the gate."""
