"""Tools that any annotation scheme can use: parsers, lexica, classifiers."""
