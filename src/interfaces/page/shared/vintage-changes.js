/** How far the value of a vintage is from the one before; 0 if it is the first of its t, or one of them is null. */
export const changeOf = ({ v, previous }) => (v === null || previous === null ? 0 : Math.abs(v - previous))

/** The largest change among vintages, above 0 so that others can be divided by it. */
export const largestChangeOf = (vintages) => Math.max(...vintages.map(changeOf), Number.MIN_VALUE)
