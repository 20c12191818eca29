"""What meets the ecosystem: modules of `evaluate`, data sets and results for the Hub, lighteval's file layout."""
