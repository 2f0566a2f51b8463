"""Who is calling: API keys, login links and cookies, JSON Web Tokens."""
