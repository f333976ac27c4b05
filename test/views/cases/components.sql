-- A component is a row for each number or null in a value, under its JSON pointer.
SELECT asset, component, v FROM components WHERE asset IN ('flat', 'nested', 'list', 'empty') ORDER BY asset, component;
/*
asset | component | v
flat | / | 9007199254740992
flat | /1w | 0.5
flat | /a~1b | -0.001
flat | /c~0d | NULL
list | /0 | 3
list | /1 | NULL
list | /2/0 | 4.5
list | /2/1/a.b" | 5e-324
nested | /k | -0
nested | /x/y/0 | 1
nested | /x/y/1/z | NULL
*/
