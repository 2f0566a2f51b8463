"""How answers look: JSON, pages of lists, readings, RFC 9457 problem documents."""
