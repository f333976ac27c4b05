import { day } from '../../time.ts'
import { type Curve, hashText, octave } from './noise.ts'

/** First block (Unix seconds) and seconds a block of the chains whose blocks are counted. */
const chains: Readonly<Record<string, readonly [genesis: number, spacing: number]>> = {
  BTC: [1_231_006_505, 575],
  ETH: [1_438_269_973, 13.3],
  LTC: [1_317_972_665, 150],
  DOGE: [1_386_325_540, 62.6],
  BCH: [1_231_006_505, 577],
  SOL: [1_584_332_940, 0.46],
  XRP: [1_357_010_470, 4.1],
  BNB: [1_598_671_449, 3],
  TRX: [1_529_891_469, 3],
  TON: [1_573_822_385, 3.9],
  AVAX: [1_600_858_926, 2.6],
  DOT: [1_590_507_378, 6],
  ADA: [1_506_203_091, 20],
  NEAR: [1_595_350_551, 1.15],
}

const wobblePeriod = 3 * day

/** The height of the asset's chain as a whole number: rises with time, faster and slower by turns, never falls. */
export function chainHeight(asset: string, seed: number): Curve {
  const [genesis, spacing] = chains[asset] ?? [1_500_000_000, 12]
  const wobble = octave(hashText(`height/${asset}`, seed), wobblePeriod)
  const fine = octave(hashText(`height/fine/${asset}`, seed), spacing * 7)
  // Slopes of both waves together stay below 1, which keeps the height from falling.
  return (at) => {
    const lead = 0.1 * wobblePeriod * wobble(at) + 0.2 * spacing * 7 * fine(at)
    return Math.max(0, Math.floor((at - genesis + lead) / spacing))
  }
}

/** The coins of a chain that halves its reward of 50 every 210,000 blocks. */
export function coinsMined(height: number): number {
  let coins = 0
  let reward = 50
  let left = height
  while (left > 0 && reward > 1e-8) {
    coins += Math.min(left, 210_000) * reward
    left -= 210_000
    reward /= 2
  }
  return coins
}
