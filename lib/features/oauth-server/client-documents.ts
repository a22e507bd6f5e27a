import type { FastifyRequest } from 'fastify'
import type { OAuthClient } from './client.js'
export function isDocumentId (id: string): boolean { return id.startsWith('https://') }
export async function documentOf (id: string, _request: FastifyRequest, _schemes: ReadonlySet<string>): Promise<OAuthClient | null> { return null as OAuthClient | null }
