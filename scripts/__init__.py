"""Programs beside the packages: measurements, checks, pictures, recordings."""
