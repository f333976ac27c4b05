-- What turns on what the registry says later.

-- products that are there today
SELECT c.ts, count(*) AS n FROM calendar('2024-02-01', '2024-08-01', '3 days') c, products p WHERE p.status = 'active' GROUP BY c.ts;

-- whether a product will ever go
SELECT c.ts, count(*) FILTER (h.valid_to < TIMESTAMPTZ 'infinity') AS n FROM calendar('2024-02-01', '2024-08-01', '3 days') c
    JOIN history.products h ON h.valid_from <= c.ts GROUP BY c.ts;
