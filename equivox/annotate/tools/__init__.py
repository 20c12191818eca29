"""Tools that any annotation scheme may use: parsers, lexica, classifiers."""
