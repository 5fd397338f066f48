"""Commands about formulas: claims, certificates, calibration, figures."""
