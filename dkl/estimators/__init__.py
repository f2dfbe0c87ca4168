"""scikit-learn facade: stores parameters, calls learn, names attributes."""
