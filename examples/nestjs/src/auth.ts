/** What makes the plugin at home in Nest: a guard, a parameter, an exception filter, a provider. */
import { STATUS_CODES } from 'node:http'
import {
  type ArgumentsHost, type CanActivate, Catch, type ExceptionFilter, type ExecutionContext, Injectable, UseGuards,
  createParamDecorator
} from '@nestjs/common'
import { HttpAdapterHost } from '@nestjs/core'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Auth, AuthError, type Guard } from 'fastify-svc-auth'

/** Runs a guard of the plugin. One that redirects a browser never resolves: the answer is sent. */
class AuthGuard implements CanActivate {
  readonly #choose: (auth: Auth) => Guard

  constructor (choose: (auth: Auth) => Guard) {
    this.#choose = choose
  }

  async canActivate (context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp()
    const request = http.getRequest<FastifyRequest>()
    await this.#choose(request.server.auth)(request, http.getResponse<FastifyReply>())
    return true
  }
}

/** `@Require()` admits signed-in users, `@Require(auth => …)` what another guard admits. */
export function Require (choose = (auth: Auth): Guard => auth.requireUser): ClassDecorator & MethodDecorator {
  return UseGuards(new AuthGuard(choose))
}

/** The signed-in user, behind `@Require()`. */
export const CurrentUser = createParamDecorator((_data: unknown, context: ExecutionContext) => {
  const request = context.switchToHttp().getRequest<FastifyRequest>()
  return request.server.auth.user(request)
})

/** Answers refusals as Fastify does. Nest takes errors of classes that it does not know for faults: 500. */
@Catch(AuthError)
export class AuthErrorFilter implements ExceptionFilter<AuthError> {
  catch ({ statusCode, code, message }: AuthError, host: ArgumentsHost): void {
    const reply = host.switchToHttp().getResponse<FastifyReply>()
    reply.code(statusCode).send({ statusCode, code, error: STATUS_CODES[statusCode], message })
  }
}

/** `app.auth` for providers. The plugin is registered after they are made: not for constructors. */
@Injectable()
export class AuthService {
  readonly #host: HttpAdapterHost

  constructor (host: HttpAdapterHost) {
    this.#host = host
  }

  get auth (): Auth {
    return this.#host.httpAdapter.getInstance().auth
  }
}
