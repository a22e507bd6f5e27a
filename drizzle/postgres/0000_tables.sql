CREATE TABLE "svc_auth_credentials" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"pw_hash" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "svc_auth_provider_links" (
	"provider" text NOT NULL,
	"subject" text NOT NULL,
	"user_id" uuid NOT NULL,
	"claims" jsonb NOT NULL,
	CONSTRAINT "svc_auth_provider_links_provider_subject_pk" PRIMARY KEY("provider","subject")
);
--> statement-breakpoint
CREATE TABLE "svc_auth_users" (
	"user_id" uuid PRIMARY KEY NOT NULL,
	"email" text,
	"name" text,
	"claims" jsonb NOT NULL,
	"extras" jsonb NOT NULL
);
--> statement-breakpoint
ALTER TABLE "svc_auth_credentials" ADD CONSTRAINT "svc_auth_credentials_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "svc_auth_provider_links" ADD CONSTRAINT "svc_auth_provider_links_user_id_svc_auth_users_user_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."svc_auth_users"("user_id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "svc_auth_provider_links_user_provider_unique" ON "svc_auth_provider_links" USING btree ("user_id","provider");--> statement-breakpoint
CREATE UNIQUE INDEX "svc_auth_users_email_unique" ON "svc_auth_users" USING btree ("email");