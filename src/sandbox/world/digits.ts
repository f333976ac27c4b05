/** An amount of coins: eight decimals, the parts that most chains count in. */
export function coinDigits(amount: number): number {
  return Math.abs(amount) < 9e7 ? Math.round(amount * 1e8) / 1e8 : amount
}

/** An amount or a price in USD: cents, and eight digits of what costs less than a dollar. */
export function usdDigits(amount: number): number {
  return Math.abs(amount) < 1 ? Number(amount.toPrecision(8)) : Math.round(amount * 100) / 100
}
