/** An amount of coins: no chain counts smaller parts than these eight decimals in its own unit of account. */
export function coinDigits(amount: number): number {
  return Math.abs(amount) < 9e7 ? Math.round(amount * 1e8) / 1e8 : amount
}

/** An amount or a price in USD: cents, and eight digits of what costs less than a dollar. */
export function usdDigits(amount: number): number {
  return Math.abs(amount) < 1 ? Number(amount.toPrecision(8)) : Math.round(amount * 100) / 100
}
