"""Usage to amounts: the rates of models, and the charges they apply to."""
