"""Who may call what. `table` lists every route with its right; `right` says what a right means; `routes` finds the route of a request;
`watch` ends requests whose token has ended."""
