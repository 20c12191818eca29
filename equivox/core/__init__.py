"""What every room shares: tasks, requests, responses, annotations, scores; and below them files, media and secrets."""
