"""``tour``: the built-in model, for when there is no provider yet."""
