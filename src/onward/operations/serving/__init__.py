"""Parts of serving requests: one run and one answer for each, also where several gateways share a root."""
