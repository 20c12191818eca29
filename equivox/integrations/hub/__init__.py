"""The Hub: data sets, submissions of results, and lighteval's file layout."""
