import { Controller, Get, Module } from '@nestjs/common'
import type { Principal } from 'fastify-svc-auth'
import { AuthService, CurrentUser, Require } from './auth.js'

@Controller()
export class AccountController {
  constructor (private readonly users: AuthService) {}

  @Get('account')
  @Require()
  account (@CurrentUser() user: Principal) {
    return { userId: user.userId, email: user.claims.email }
  }

  @Get('users')
  @Require(auth => auth.requireClaims({ role: 'admin' }))
  async list () {
    return this.users.auth.users()
  }
}

@Module({ controllers: [AccountController], providers: [AuthService] })
export class AppModule {}
