"""From a parsed spec to a ChartPlan: every default filled, every decision made, every impossibility refused."""
