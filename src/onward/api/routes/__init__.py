"""Routes of the native API, grouped by noun. Each is a plain function over the services.

Not here: who may call a route (access), what goes in and out (schemas), SQL (tracker).
"""
