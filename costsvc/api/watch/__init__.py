"""What an operator sees of requests: metrics, access lines and spans. Nothing here changes an answer."""
