import type { FastifyReply, FastifyRequest } from 'fastify'
import type { AuthError } from '../errors.js'
import { ANY_ORIGIN, isOwnPath } from '../http/redirects.js'

/** Answers a form of a page, which failed, with that page. */
export type FailurePage = (request: FastifyRequest, reply: FastifyReply, error: AuthError) => Promise<FastifyReply>

/** The pages of the plugin that show the failures of their forms. */
export class FailurePages {
  readonly #pages = new Map<string, (query: URLSearchParams) => FailurePage>()

  /**
   * Adds a page.
   *
   * @param path as browsers see it
   */
  add (path: string, pageWith: (query: URLSearchParams) => FailurePage): void {
    this.#pages.set(path, pageWith)
  }

  /** Finds what shows failures on a page; null for a path of no such page. */
  find (path: string): FailurePage | null {
    if (!isOwnPath(path)) return null
    const { pathname, searchParams } = new URL(path, ANY_ORIGIN)
    return this.#pages.get(pathname)?.(searchParams) ?? null
  }
}
