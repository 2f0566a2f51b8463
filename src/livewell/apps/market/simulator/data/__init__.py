"""The simulated market: pure functions of the seed, the symbol and the instant.

Nothing is stored.

    noise ──▶ prices (the walk of every symbol) ──▶ quote, profile, statement, earnings, history, news ──▶ dataset

noise         numbers drawn from a seed, a symbol and a place
universe      which symbols there are
prices        the price of a symbol at any instant
trading_day   the exchange's days and hours
dataset       which path answers with what; the others are one kind of data each
"""
