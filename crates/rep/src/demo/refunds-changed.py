def find(db, order):
    query = "SELECT id, amount FROM refunds WHERE order_id = '" + order + "'"
    return db.execute(query).fetchall()


def share(refunds, orders):
    return len(refunds) / len(orders)
