"""From a ChartPlan to the files of a chart. Nothing is decided here and nothing is written."""
