"""Certified functions: the normal tail, the incomplete beta function, integrals and roots."""
