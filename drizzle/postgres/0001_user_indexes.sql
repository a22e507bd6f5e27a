DROP INDEX "svc_auth_users_email_unique";--> statement-breakpoint
CREATE INDEX "svc_auth_users_blocked" ON "svc_auth_users" USING btree ("user_id") WHERE extras -> 'blocked' is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email" text_pattern_ops);