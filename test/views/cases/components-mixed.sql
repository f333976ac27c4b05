-- Components of lists in objects in lists: each has its place, and texts have none.
SELECT asset, component, v FROM components WHERE asset IN ('mixed', 'listed') ORDER BY asset, component;
/*
asset | component | v
listed | /0/0 | 1
listed | /0/1 | 2
listed | /1/1 | NULL
listed | /1/2 | 7
listed | /2/k/0 | 8
listed | /4 | 9
mixed | /a~0b/0/c~0d/0 | 3
mixed | /a~0b/0/c~0d/1/0 | 4
mixed | /a~0b/1/c~0d | 5
mixed | /n | NULL
mixed | /o/x~1y | 6
mixed | /p~1q/0 | 1
mixed | /p~1q/1 | NULL
mixed | /p~1q/3 | -2
*/
