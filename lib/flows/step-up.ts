import type { FastifyRequest } from 'fastify'
import type { Outbox } from '../mails/outbox.js'
import { readCode, spendCode } from './factor-codes.js'
import { prove } from './reauthentication.js'
import { confirmedRecord } from './refresh.js'
import type { StepRules } from './sign-in-rules.js'

/**
 * Authenticates the signed-in user again, by a code: see {@link reauthenticate}.
 *
 * @throws AuthError `unauthenticated`, `invalid_code`, `invalid_state`, `rate_limited`,
 * `unavailable`
 */
export async function reauthenticateByCode (
  request: FastifyRequest,
  rules: StepRules,
  { code, outbox }: { code: string, outbox: Outbox }
): Promise<void> {
  const typed = readCode(code)
  const record = await confirmedRecord(request, rules.store)
  const { principal: { userId }, generation } = record
  const { proof } = await spendCode(request, rules, { userId, generation }, { code: typed, outbox })
  await prove(request, record, proof.method)
}
