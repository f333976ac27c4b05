// @module-tag full
// @module-tag slow
import { commandsThatAsk } from '../helpers/ends-rows.ts'
import { playRows } from '../helpers/ends-play.ts'
import { aLake, followed } from '../helpers/ends-words.ts'
import { isFullTier } from '../helpers/tiers.ts'

playRows(commandsThatAsk, [aLake, followed], isFullTier)
