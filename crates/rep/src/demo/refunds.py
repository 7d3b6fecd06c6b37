def find(db, order):
    return db.execute("SELECT id, amount FROM refunds WHERE order_id = ?", (order,)).fetchall()
