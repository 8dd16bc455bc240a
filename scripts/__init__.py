"""Programs beside the packages: measurements, checks, figures, recordings."""
