// @module-tag full
// @module-tag slow
import { commandsOfTheLake } from '../helpers/ends-rows.ts'
import { playRows } from '../helpers/ends-play.ts'
import { aLake, stampedAndFresh } from '../helpers/ends-words.ts'
import { isFullTier } from '../helpers/tiers.ts'

playRows(commandsOfTheLake, [aLake, ...stampedAndFresh], isFullTier)
