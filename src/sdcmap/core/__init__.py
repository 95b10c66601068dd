"""The contract: values, methods, measures, rules, grids and random streams; what a method note lets its reader compute."""
