import type { FastifyBaseLogger } from 'fastify'

const HOUR_MS = 60 * 60 * 1000

/**
 * Notes the use of what a guard has found, hourly at most. The guard does not wait for it, nor
 * fails with it.
 *
 * @param usedAt the use that was noted last; null for none
 */
export function noteHourly (
  usedAt: number | null,
  { now, note, log, what }:
  { now: number, note: () => Promise<void>, log: Pick<FastifyBaseLogger, 'warn'>, what: string }
): void {
  if (usedAt !== null && usedAt >= now - HOUR_MS) return
  note().catch((err: unknown) => { log.warn({ err }, `the use of ${what} was not noted`) })
}
