"""Token formats and named services, as data.

The services publish these formats. The tables cover everything that gitleaks and detect-secrets recognize.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct


class TokenFormat(Struct, frozen=True):
    """A kind of credential that is recognized by its format.

    `pattern` is a regular expression for the whole token. `anchor` is a literal at its start, or up to `before`
    characters after the start. `alone` requires that no letter or digit precedes it, for anchors that are common in
    words. A format without an anchor has `runs`: the length range of its longest run of letters, digits, `_` and `-`.
    """

    kind: str
    what: str
    anchor: str
    pattern: str
    before: int = 0
    alone: bool = False
    runs: tuple[int, int] | None = None


class Service(Struct, frozen=True):
    """A service whose credentials have no distinctive format, but are assigned to names that contain the service.

    `names` are spellings of the service in such names, in lower case and without separators. `pattern` matches the
    whole value.
    """

    kind: str
    what: str
    names: tuple[str, ...]
    pattern: str


class Span(NamedTuple):
    """Something of a kind that was found from `start` to `end`.

    A `local_only` span is replaced only at this position. `value` is the secret, if it differs from the span's text.
    """

    start: int
    end: int
    kind: str
    local_only: bool = False
    value: str = ""


_UUID_PATTERN = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

CLOUD_FORMATS = (
    TokenFormat("aws-access-key-id", "AWS access key id", "AKIA", "AKIA[A-Z0-9]{16}", alone=True),
    TokenFormat("aws-temporary-key-id", "AWS temporary access key id", "ASIA", "ASIA[A-Z0-9]{16}", alone=True),
    TokenFormat("aws-sts-key-id", "AWS service bearer token", "ABIA", "ABIA[A-Z0-9]{16}", alone=True),
    TokenFormat("aws-context-key-id", "AWS context-specific credential", "ACCA", "ACCA[A-Z0-9]{16}", alone=True),
    TokenFormat("aws-legacy-key-id", "AWS access key id, oldest format", "A3T", "A3T[A-Z0-9]{17}", alone=True),
    TokenFormat(
        "aws-bedrock-key", "Amazon Bedrock API key, long-lived", "ABSK", "ABSK[A-Za-z0-9+/]{100,270}={0,2}", alone=True
    ),
    TokenFormat(
        "aws-bedrock-session-key",
        "Amazon Bedrock API key, short-lived",
        "bedrock-api-key-",
        "bedrock-api-key-[A-Za-z0-9+/_-]{20,}={0,2}",
    ),
    TokenFormat("aws-mws-token", "Amazon Marketplace token", "mws.", rf"amzn\.mws\.{_UUID_PATTERN}", before=9),
    TokenFormat("gcp-api-key", "Google API key", "AIza", "AIza[A-Za-z0-9_-]{35}"),
    TokenFormat("google-oauth-secret", "Google OAuth client secret", "GOCSPX-", "GOCSPX-[A-Za-z0-9_-]{20,40}"),
    TokenFormat("google-oauth-token", "Google OAuth access token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{20,}"),
    TokenFormat(
        "azure-devops-token",
        "Azure DevOps personal access token",
        "",
        "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}",
        runs=(84, 84),
    ),
    TokenFormat("alibaba-key-id", "Alibaba Cloud access key id", "LTAI", "LTAI[A-Za-z0-9]{14,24}", alone=True),
    TokenFormat("yandex-api-key", "Yandex API key", "AQVN", "AQVN[A-Za-z0-9_-]{35,38}", alone=True),
    TokenFormat("yandex-iam-token", "Yandex IAM token", "t1.", r"t1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{80,90}={0,2}"),
    TokenFormat("yandex-static-key", "Yandex static access key", "YCA", "YCA[A-Za-z0-9_-]{37}", alone=True),
    TokenFormat("digitalocean-token", "DigitalOcean personal access token", "dop_v1_", "dop_v1_[a-f0-9]{64}"),
    TokenFormat("digitalocean-oauth-token", "DigitalOcean OAuth token", "doo_v1_", "doo_v1_[a-f0-9]{64}"),
    TokenFormat("digitalocean-refresh-token", "DigitalOcean refresh token", "dor_v1_", "dor_v1_[a-f0-9]{64}"),
    TokenFormat("heroku-token", "Heroku API key", "HRKU-", "HRKU-[A-Za-z0-9_-]{30,60}"),
    TokenFormat("flyio-token", "Fly.io access token", "fo1_", "fo1_[A-Za-z0-9_-]{43}"),
    TokenFormat("flyio-machine-token", "Fly.io machine token", "fm1", "fm1[ar]_[A-Za-z0-9+/]{60,}={0,3}", alone=True),
    TokenFormat("flyio-macaroon", "Fly.io macaroon", "fm2_", "fm2_[A-Za-z0-9+/]{60,}={0,3}"),
    TokenFormat("scalingo-token", "Scalingo API token", "tk-us-", "tk-us-[A-Za-z0-9_-]{48}"),
    TokenFormat("scaleway-key", "Scaleway access key", "SCW", "SCW[A-Z0-9]{17}", alone=True),
    TokenFormat("render-key", "Render API key", "rnd_", "rnd_[A-Za-z0-9]{28,40}"),
    TokenFormat("vercel-token", "Vercel token", "vcp_", "vcp_[A-Za-z0-9]{24,60}"),
    TokenFormat("netlify-token", "Netlify personal access token", "nfp_", "nfp_[A-Za-z0-9]{36,40}"),
    TokenFormat("cloudflare-origin-key", "Cloudflare origin CA key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    TokenFormat("planetscale-token", "PlanetScale API token", "pscale_tkn_", r"pscale_tkn_[\w.-]{32,64}"),
    TokenFormat("planetscale-oauth-token", "PlanetScale OAuth token", "pscale_oauth_", r"pscale_oauth_[\w.-]{32,64}"),
    TokenFormat("planetscale-password", "PlanetScale password", "pscale_pw_", r"pscale_pw_[\w.-]{32,64}"),
    TokenFormat("supabase-token", "Supabase access token", "sbp_", "sbp_[a-f0-9]{40}"),
    TokenFormat("supabase-secret-key", "Supabase secret key", "sb_secret_", "sb_secret_[A-Za-z0-9_-]{20,}"),
    TokenFormat("clickhouse-key", "ClickHouse Cloud secret key", "4b1d", "4b1d[A-Za-z0-9]{38}", alone=True),
    TokenFormat("databricks-token", "Databricks API token", "dapi", "dapi[a-f0-9]{32}(?:-[0-9])?", alone=True),
    TokenFormat("aiven-token", "Aiven token", "AVNS_", "AVNS_[A-Za-z0-9_-]{15,40}"),
    TokenFormat("openshift-token", "OpenShift user token", "sha256~", r"sha256~[\w-]{43}"),
    TokenFormat(
        "defined-networking-token", "Defined Networking API token", "dnkey-", "dnkey-[a-z0-9_-]{26}-[a-z0-9_-]{52}"
    ),
    TokenFormat("tailscale-key", "Tailscale key", "tskey-", "tskey-[a-z]+-[A-Za-z0-9]{6,}-[A-Za-z0-9]{16,}"),
    TokenFormat("doppler-token", "Doppler personal token", "dp.pt.", r"dp\.pt\.[A-Za-z0-9]{40,44}"),
    TokenFormat(
        "doppler-service-token", "Doppler service token", "dp.st.", r"dp\.st\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"
    ),
    TokenFormat(
        "terraform-token", "Terraform Cloud token", "atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}", 15
    ),
    TokenFormat("pulumi-token", "Pulumi access token", "pul-", "pul-[a-f0-9]{40}", alone=True),
    TokenFormat("vault-service-token", "Vault service token", "hvs.", r"hvs\.[\w-]{24,200}"),
    TokenFormat("vault-batch-token", "Vault batch token", "hvb.", r"hvb\.[\w-]{60,400}"),
    TokenFormat("vault-recovery-token", "Vault recovery token", "hvr.", r"hvr\.[\w-]{24,200}"),
    TokenFormat(
        "vault-legacy-token", "Vault token before 1.10", "s.", r"s\.(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24}(?!\w)", alone=True
    ),
    TokenFormat("infracost-token", "Infracost API token", "ico-", "ico-[A-Za-z0-9]{32}", alone=True),
    TokenFormat(
        "harness-personal-token", "Harness personal token", "pat.", r"pat\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"
    ),
    TokenFormat(
        "harness-service-token", "Harness service token", "sat.", r"sat\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"
    ),
    TokenFormat("octopus-key", "Octopus Deploy API key", "API-", "API-[A-Z0-9]{26,32}", alone=True),
)

CODE_FORMATS = (
    TokenFormat("github-token", "GitHub personal access token", "ghp_", "ghp_[A-Za-z0-9]{36,255}"),
    TokenFormat(
        "github-fine-grained-token", "GitHub fine-grained token", "github_pat_", "github_pat_[A-Za-z0-9_]{36,255}"
    ),
    TokenFormat("github-oauth-token", "GitHub OAuth token", "gho_", "gho_[A-Za-z0-9]{36,255}"),
    TokenFormat("github-user-token", "GitHub App user token", "ghu_", "ghu_[A-Za-z0-9]{36,255}"),
    TokenFormat("github-app-token", "GitHub App installation token", "ghs_", "ghs_[A-Za-z0-9]{36,255}"),
    TokenFormat("github-refresh-token", "GitHub refresh token", "ghr_", "ghr_[A-Za-z0-9]{36,255}"),
    TokenFormat(
        "gitlab-token", "GitLab personal access token", "glpat-", r"glpat-[\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?"
    ),
    TokenFormat("gitlab-trigger-token", "GitLab pipeline trigger token", "glptt-", "glptt-[0-9a-f]{40}"),
    TokenFormat(
        "gitlab-runner-token", "GitLab runner token", "glrt-", r"glrt-[\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?"
    ),
    TokenFormat("gitlab-runner-registration", "GitLab runner registration token", "GR1348941", r"GR1348941[\w-]{20}"),
    TokenFormat("gitlab-deploy-token", "GitLab deploy token", "gldt-", r"gldt-[\w-]{20,64}"),
    TokenFormat("gitlab-feed-token", "GitLab feed token", "glft-", r"glft-[\w-]{20,64}"),
    TokenFormat("gitlab-feature-flag-token", "GitLab feature flag token", "glffct-", r"glffct-[\w-]{20,64}"),
    TokenFormat("gitlab-mail-token", "GitLab incoming mail token", "glimt-", r"glimt-[\w-]{25,64}"),
    TokenFormat("gitlab-agent-token", "GitLab agent token", "glagent-", r"glagent-[\w-]{50,70}"),
    TokenFormat("gitlab-oauth-secret", "GitLab OAuth application secret", "gloas-", r"gloas-[\w-]{64}"),
    TokenFormat("gitlab-job-token", "GitLab job token", "glcbt-", r"glcbt-[0-9A-Za-z]{1,5}_[\w-]{20,64}"),
    TokenFormat("gitlab-scim-token", "GitLab SCIM token", "glsoat-", r"glsoat-[\w-]{20,64}"),
    TokenFormat("atlassian-token", "Atlassian API token", "ATATT3", "ATATT3[A-Za-z0-9_-]{40,240}(?:=[A-Fa-f0-9]{8})?"),
    TokenFormat(
        "bitbucket-token", "Bitbucket access token", "ATCTT3", "ATCTT3[A-Za-z0-9_-]{40,240}(?:=[A-Fa-f0-9]{8})?"
    ),
    TokenFormat("bitbucket-app-password", "Bitbucket app password", "ATBB", "ATBB[A-Za-z0-9]{32}", alone=True),
    TokenFormat("npm-token", "npm access token", "npm_", "npm_[A-Za-z0-9]{36}"),
    TokenFormat("pypi-token", "PyPI upload token", "pypi-", "pypi-Ag[A-Za-z0-9_-]{50,1000}"),
    TokenFormat("rubygems-token", "RubyGems API token", "rubygems_", "rubygems_[a-f0-9]{48}"),
    TokenFormat("clojars-token", "Clojars deploy token", "CLOJARS_", "CLOJARS_[A-Za-z0-9]{60}"),
    TokenFormat("nuget-key", "NuGet API key", "oy2", "oy2[a-z0-9]{43}", alone=True),
    TokenFormat("crates-token", "crates.io token", "cio", "cio[A-Za-z0-9]{32}", alone=True),
    TokenFormat("docker-token", "Docker Hub personal access token", "dckr_pat_", "dckr_pat_[A-Za-z0-9_-]{27,}"),
    TokenFormat("artifactory-key", "Artifactory API key", "AKCp", "AKCp[A-Za-z0-9]{66,73}", alone=True),
    TokenFormat(
        "artifactory-password",
        "Artifactory encrypted password",
        "AP",
        "AP[0-9A-F](?=[A-Za-z]*[0-9])[A-Za-z0-9]{30,80}",
        alone=True,
    ),
    TokenFormat(
        "artifactory-reference-token", "Artifactory reference token", "cmVmd", "cmVmd[A-Za-z0-9]{59}", alone=True
    ),
    TokenFormat("circleci-token", "CircleCI personal token", "CCIPAT_", "CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    TokenFormat("buildkite-token", "Buildkite access token", "bkua_", "bkua_[a-f0-9]{40}"),
    TokenFormat("sonar-token", "SonarQube user token", "squ_", "squ_[a-f0-9]{40}"),
    TokenFormat("sonar-project-token", "SonarQube project token", "sqp_", "sqp_[a-f0-9]{40}"),
    TokenFormat("sonar-analysis-token", "SonarQube analysis token", "sqa_", "sqa_[a-f0-9]{40}"),
    TokenFormat(
        "sourcegraph-token", "Sourcegraph access token", "sgp_", "sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"
    ),
    TokenFormat("postman-key", "Postman API key", "PMAK-", "PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}"),
    TokenFormat("postman-collection-key", "Postman collection key", "PMAT-", "PMAT-[A-Z0-9]{26}"),
    TokenFormat("readme-token", "ReadMe API token", "rdme_", "rdme_[a-z0-9]{70}"),
    TokenFormat("prefect-token", "Prefect API token", "pnu_", "pnu_[A-Za-z0-9]{36}"),
    TokenFormat("figma-token", "Figma personal access token", "figd_", "figd_[A-Za-z0-9_-]{38,50}"),
    TokenFormat("age-secret-key", "age secret key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    TokenFormat(
        "1password-key",
        "1Password secret key",
        "A3-",
        "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    TokenFormat(
        "1password-service-token", "1Password service account token", "ops_", "ops_eyJ[A-Za-z0-9+/]{100,}={0,3}"
    ),
    TokenFormat(
        "authress-key",
        "Authress service key",
        "acc",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_-]{30,120}={0,2}",
        50,
    ),
)

MODEL_FORMATS = (
    TokenFormat("anthropic-key", "Anthropic API key", "sk-ant-", "sk-ant-[A-Za-z0-9_-]{20,200}"),
    TokenFormat("openai-project-key", "OpenAI project key", "sk-proj-", "sk-proj-[A-Za-z0-9_-]{20,300}"),
    TokenFormat("openai-service-key", "OpenAI service account key", "sk-svcacct-", "sk-svcacct-[A-Za-z0-9_-]{20,300}"),
    TokenFormat("openai-admin-key", "OpenAI admin key", "sk-admin-", "sk-admin-[A-Za-z0-9_-]{20,300}"),
    TokenFormat("openrouter-key", "OpenRouter API key", "sk-or-", "sk-or-(?:v[0-9]-)?[A-Za-z0-9]{32,80}"),
    TokenFormat(
        "openai-key",
        "OpenAI API key, and keys of services with the same format",
        "sk-",
        "sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9]{20,64}",
        alone=True,
    ),
    TokenFormat("perplexity-key", "Perplexity API key", "pplx-", "pplx-[A-Za-z0-9]{48,56}"),
    TokenFormat("groq-key", "Groq API key", "gsk_", "gsk_[A-Za-z0-9]{48,56}"),
    TokenFormat("xai-key", "xAI API key", "xai-", "xai-[A-Za-z0-9]{60,90}"),
    TokenFormat("nvidia-key", "NVIDIA API key", "nvapi-", "nvapi-[A-Za-z0-9_-]{60,80}"),
    TokenFormat("replicate-token", "Replicate API token", "r8_", "r8_[A-Za-z0-9]{37,40}", alone=True),
    TokenFormat("huggingface-token", "Hugging Face access token", "hf_", "hf_[A-Za-z0-9]{34,40}", alone=True),
    TokenFormat("huggingface-org-token", "Hugging Face organisation token", "api_org_", "api_org_[A-Za-z0-9]{34,40}"),
    TokenFormat("langsmith-key", "LangSmith API key", "lsv2_", "lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    TokenFormat("tavily-key", "Tavily API key", "tvly-", "tvly-(?:[a-z]+-)?[A-Za-z0-9]{24,40}"),
    TokenFormat("elevenlabs-key", "ElevenLabs API key", "sk_", "sk_[a-f0-9]{48}(?![A-Za-z0-9])", alone=True),
)


MESSAGING_FORMATS = (
    TokenFormat("slack-bot-token", "Slack bot token", "xoxb-", "xoxb-[0-9]{8,14}-[A-Za-z0-9-]{18,80}"),
    TokenFormat("slack-user-token", "Slack user token", "xoxp-", "xoxp-[0-9]{8,14}-[A-Za-z0-9-]{20,100}"),
    TokenFormat(
        "slack-config-token", "Slack configuration token", "xoxe.", r"xoxe\.xox[bp]-[0-9]-[A-Za-z0-9]{100,200}"
    ),
    TokenFormat(
        "slack-refresh-token", "Slack configuration refresh token", "xoxe-", "xoxe-[0-9]+-[A-Za-z0-9-]{28,200}"
    ),
    TokenFormat("slack-workspace-token", "Slack workspace token", "xoxa-", "xoxa-(?:[0-9]-)?[A-Za-z0-9-]{16,100}"),
    TokenFormat(
        "slack-workspace-refresh-token",
        "Slack workspace refresh token",
        "xoxr-",
        "xoxr-(?:[0-9]-)?[A-Za-z0-9-]{16,100}",
    ),
    TokenFormat("slack-legacy-token", "Slack legacy integration token", "xoxo-", "xoxo-[0-9]+-[A-Za-z0-9-]{16,100}"),
    TokenFormat("slack-session-token", "Slack session token", "xoxs-", "xoxs-[0-9]+-[A-Za-z0-9-]{16,100}"),
    TokenFormat("slack-client-token", "Slack browser token", "xoxc-", "xoxc-[0-9]+-[A-Za-z0-9-]{16,120}"),
    TokenFormat("slack-app-token", "Slack app-level token", "xapp-", "xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]{16,}"),
    TokenFormat("discord-token", "Discord bot token", "", r"[MNO][\w-]{23,25}\.[\w-]{6}\.[\w-]{27,38}", runs=(24, 26)),
    TokenFormat("telegram-token", "Telegram bot token", "", "[0-9]{8,10}:A[A-Za-z0-9_-]{34}", 11, runs=(35, 35)),
    TokenFormat("twilio-key", "Twilio API key", "SK", "SK[0-9a-f]{32}(?![0-9A-Za-z])", alone=True),
    TokenFormat("twilio-account", "Twilio account id", "AC", "AC[0-9a-f]{32}(?![0-9A-Za-z])", alone=True),
    TokenFormat("sendgrid-key", "SendGrid API key", "SG.", r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{16,64}"),
    TokenFormat("brevo-key", "Brevo (Sendinblue) API key", "xkeysib-", "xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    TokenFormat("brevo-smtp-key", "Brevo (Sendinblue) SMTP key", "xsmtpsib-", "xsmtpsib-[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    TokenFormat("mailgun-key", "Mailgun private key", "key-", "key-[a-f0-9]{32}(?![0-9A-Za-z])", alone=True),
    TokenFormat("mailgun-public-key", "Mailgun validation key", "pubkey-", "pubkey-[a-f0-9]{32}(?![0-9A-Za-z])"),
    TokenFormat("mailchimp-key", "Mailchimp API key", "", "[0-9a-f]{32}-us[0-9]{1,2}", runs=(36, 37)),
    TokenFormat("resend-key", "Resend API key", "re_", "re_[A-Za-z0-9]{8,9}_[A-Za-z0-9]{20,28}", alone=True),
    TokenFormat("notion-token", "Notion integration token", "ntn_", "ntn_[0-9]{11}[A-Za-z0-9]{35}"),
    TokenFormat(
        "notion-secret", "Notion integration secret", "secret_", "secret_[A-Za-z0-9]{43}(?![A-Za-z0-9])", alone=True
    ),
    TokenFormat("linear-key", "Linear API key", "lin_api_", "lin_api_[A-Za-z0-9]{40}"),
    TokenFormat("linear-oauth-token", "Linear OAuth token", "lin_oauth_", "lin_oauth_[A-Za-z0-9]{40,64}"),
    TokenFormat(
        "airtable-token", "Airtable personal access token", "pat", r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}", alone=True
    ),
    TokenFormat(
        "asana-token",
        "Asana personal access token",
        "",
        "[0-2]/[0-9]{16}(?:/[0-9]{16})?:[a-f0-9]{32}",
        36,
        runs=(32, 32),
    ),
    TokenFormat("typeform-token", "Typeform personal token", "tfp_", "tfp_[A-Za-z0-9_.-]{40,60}"),
    TokenFormat("frameio-token", "Frame.io API token", "fio-u-", "fio-u-[A-Za-z0-9_-]{64}"),
    TokenFormat("dropbox-token", "Dropbox short-lived token", "sl.", r"sl\.[A-Za-z0-9_-]{130,152}", alone=True),
    TokenFormat("facebook-page-token", "Facebook page token", "EAA", "EAA[MC][A-Za-z0-9]{100,}", alone=True),
    TokenFormat(
        "facebook-app-token", "Facebook app token", "", r"[0-9]{15,16}\|[A-Za-z0-9_-]{27,40}", 17, runs=(27, 40)
    ),
    TokenFormat("adobe-client-secret", "Adobe client secret", "p8e-", "p8e-[A-Za-z0-9]{32}"),
    TokenFormat("intra42-secret", "42 client secret", "s-s4t2", "s-s4t2(?:ud|af)-[a-f0-9]{64}"),
)

PAYMENT_FORMATS = (
    TokenFormat("stripe-live-key", "Stripe secret key", "sk_live_", "sk_live_[A-Za-z0-9]{10,200}"),
    TokenFormat("stripe-test-key", "Stripe test secret key", "sk_test_", "sk_test_[A-Za-z0-9]{10,200}"),
    TokenFormat("stripe-restricted-key", "Stripe restricted key", "rk_live_", "rk_live_[A-Za-z0-9]{10,200}"),
    TokenFormat("stripe-restricted-test-key", "Stripe test restricted key", "rk_test_", "rk_test_[A-Za-z0-9]{10,200}"),
    TokenFormat("stripe-webhook-secret", "Stripe webhook secret", "whsec_", "whsec_[A-Za-z0-9+/]{24,64}={0,2}"),
    TokenFormat("square-token", "Square access token", "EAAA", "EAAA[A-Za-z0-9_-]{56,70}", alone=True),
    TokenFormat("square-legacy-token", "Square access token, old format", "sq0atp-", r"sq0atp-[\w-]{22}"),
    TokenFormat("square-oauth-secret", "Square OAuth secret", "sq0csp-", r"sq0csp-[\w-]{43}"),
    TokenFormat("shopify-token", "Shopify access token", "shpat_", "shpat_[a-fA-F0-9]{32}"),
    TokenFormat("shopify-custom-token", "Shopify custom app token", "shpca_", "shpca_[a-fA-F0-9]{32}"),
    TokenFormat("shopify-private-token", "Shopify private app token", "shppa_", "shppa_[a-fA-F0-9]{32}"),
    TokenFormat("shopify-shared-secret", "Shopify shared secret", "shpss_", "shpss_[a-fA-F0-9]{32}"),
    TokenFormat(
        "braintree-token",
        "PayPal Braintree access token",
        "access_token$",
        r"access_token\$(?:production|sandbox)\$[0-9a-z]{16}\$[0-9a-f]{32}",
    ),
    TokenFormat(
        "flutterwave-secret", "Flutterwave secret key", "FLWSECK", "FLWSECK(?:_TEST)?-[a-hA-H0-9]{12,32}(?:-X)?"
    ),
    TokenFormat("flutterwave-public-key", "Flutterwave public key", "FLWPUBK", "FLWPUBK(?:_TEST)?-[a-hA-H0-9]{32}-X"),
    TokenFormat("duffel-token", "Duffel API token", "duffel_", "duffel_(?:test|live)_[A-Za-z0-9_-]{40,44}"),
    TokenFormat("easypost-token", "EasyPost API token", "EZAK", "EZAK[A-Za-z0-9]{54}", alone=True),
    TokenFormat("easypost-test-token", "EasyPost test API token", "EZTK", "EZTK[A-Za-z0-9]{54}", alone=True),
    TokenFormat("shippo-token", "Shippo API token", "shippo_", "shippo_(?:live|test)_[a-fA-F0-9]{40}"),
    TokenFormat("lob-key", "Lob API key", "live_", "live_(?:pub_)?[a-f0-9]{31,35}(?![0-9A-Za-z])", alone=True),
    TokenFormat(
        "lob-test-key", "Lob test API key", "test_", "test_(?:pub_)?[a-f0-9]{31,35}(?![0-9A-Za-z])", alone=True
    ),
    TokenFormat(
        "gocardless-token", "GoCardless access token", "live_", "live_[A-Za-z0-9_-]{40}(?![A-Za-z0-9_-])", alone=True
    ),
    TokenFormat(
        "plaid-token", "Plaid access token", "access-", "access-(?:sandbox|development|production)-[0-9a-f-]{36}"
    ),
    TokenFormat("settlemint-personal-token", "SettleMint personal token", "sm_pat_", "sm_pat_[A-Za-z0-9]{16}"),
    TokenFormat("settlemint-application-token", "SettleMint application token", "sm_aat_", "sm_aat_[A-Za-z0-9]{16}"),
    TokenFormat("settlemint-service-token", "SettleMint service token", "sm_sat_", "sm_sat_[A-Za-z0-9]{16}"),
)

MONITORING_FORMATS = (
    TokenFormat("grafana-key", "Grafana API key", "eyJrIjoi", "eyJrIjoi[A-Za-z0-9+/]{50,400}={0,3}"),
    TokenFormat("grafana-cloud-token", "Grafana Cloud token", "glc_", "glc_[A-Za-z0-9+/]{32,400}={0,3}"),
    TokenFormat(
        "grafana-service-token", "Grafana service account token", "glsa_", "glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"
    ),
    TokenFormat("newrelic-user-key", "New Relic user key", "NRAK-", "NRAK-[A-Za-z0-9]{27}"),
    TokenFormat("newrelic-browser-key", "New Relic browser key", "NRJS-", "NRJS-[a-f0-9]{19}"),
    TokenFormat("newrelic-insert-key", "New Relic insert key", "NRII-", "NRII-[A-Za-z0-9_-]{32}"),
    TokenFormat("newrelic-license-key", "New Relic licence key", "", "[a-fA-F0-9]{36}NRAL", runs=(40, 40)),
    TokenFormat(
        "dynatrace-token",
        "Dynatrace API token",
        "dt0",
        r"dt0[a-z][0-9]{2}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",
        alone=True,
    ),
    TokenFormat(
        "sentry-org-token",
        "Sentry organisation token",
        "sntrys_",
        "sntrys_eyJ[A-Za-z0-9+/]{40,400}={0,2}_[A-Za-z0-9+/]{43}",
    ),
    TokenFormat("sentry-user-token", "Sentry user token", "sntryu_", "sntryu_[a-f0-9]{64}"),
    TokenFormat("posthog-key", "PostHog personal key", "phx_", "phx_[A-Za-z0-9]{40,50}", alone=True),
    TokenFormat("maxmind-key", "MaxMind licence key", "", "[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk", runs=(40, 40)),
    TokenFormat(
        "mapbox-token", "Mapbox public token", "pk.", r"pk\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{22}", alone=True
    ),
    TokenFormat(
        "mapbox-secret-token", "Mapbox secret token", "sk.", r"sk\.eyJ[A-Za-z0-9_-]{40,}\.[A-Za-z0-9_-]{22}", alone=True
    ),
    TokenFormat("launchdarkly-key", "LaunchDarkly SDK key", "sdk-", "sdk-[0-9a-f]{8}-[0-9a-f-]{27}", alone=True),
    TokenFormat(
        "launchdarkly-api-key",
        "LaunchDarkly API key",
        "api-",
        "api-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
        alone=True,
    ),
    TokenFormat("contentful-token", "Contentful management token", "CFPAT-", "CFPAT-[A-Za-z0-9_-]{43}"),
    TokenFormat(
        "rapidapi-key",
        "RapidAPI key",
        "",
        "[A-Za-z0-9]{10}msh[A-Za-z0-9]{15}p1[A-Za-z0-9]{5}jsn[A-Za-z0-9]{12}",
        runs=(50, 50),
    ),
    TokenFormat(
        "jwt",
        "JSON Web Token",
        "eyJ",
        r"eyJ[A-Za-z0-9_-]{10,}\.(?:eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{0,}|[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]{8,}){3})",
    ),
    TokenFormat("phoenix-token", "Phoenix signed token", "SFMyNTY.", r"SFMyNTY\.[\w-]{10,}\.[\w-]{20,}"),
    TokenFormat("jwt-base64", "JSON Web Token in base64", "ZXlK", "ZXlK[A-Za-z0-9+/_-]{60,}={0,2}", alone=True),
)


_HEX32 = "[a-f0-9]{32}"
_LOW32 = "[a-z0-9]{32}"
_ANY32 = "[A-Za-z0-9=_-]{32}"
_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

SERVICES = (
    Service("adafruit-key", "Adafruit IO key", ("adafruit",), "[A-Za-z0-9_-]{32}"),
    Service("adobe-client-id", "Adobe client id", ("adobe",), _HEX32),
    Service("airtable-key", "Airtable API key", ("airtable",), "[A-Za-z0-9]{17}"),
    Service("algolia-key", "Algolia API key", ("algolia",), _LOW32),
    Service("alibaba-secret-key", "Alibaba Cloud secret key", ("alibaba", "aliyun"), "[A-Za-z0-9]{30}"),
    Service("asana-client", "Asana client id or secret", ("asana",), f"[0-9]{{16}}|{_LOW32}"),
    Service(
        "atlassian-api-token", "Atlassian API token, old format", ("atlassian", "confluence", "jira"), "[A-Za-z0-9]{24}"
    ),
    Service("aws-secret-key", "AWS secret access key", ("awssecret", "secretaccesskey"), "[A-Za-z0-9/+]{40}"),
    Service("aws-session-token", "AWS session token", ("awssessiontoken",), "[A-Za-z0-9/+=]{100,}"),
    Service("azure-storage-key", "Azure storage account key", ("accountkey",), "[A-Za-z0-9+/]{86}=="),
    Service("beamer-token", "Beamer API token", ("beamer",), "b_[A-Za-z0-9=_-]{44}"),
    Service("bitbucket-client", "Bitbucket client id or secret", ("bitbucket",), f"{_LOW32}|[A-Za-z0-9=_-]{{64}}"),
    Service("bittrex-key", "Bittrex key", ("bittrex",), _LOW32),
    Service("box-key", "Box client secret", ("boxclient", "boxsecret"), "[A-Za-z0-9]{32}"),
    Service("meraki-key", "Cisco Meraki API key", ("meraki",), "[0-9a-f]{40}"),
    Service("cloudant-key", "IBM Cloudant key or password", ("cloudant",), "[0-9a-f]{64}|[a-z]{24}"),
    Service("cloudflare-key", "Cloudflare API key or token", ("cloudflare",), "[a-f0-9]{37}|[A-Za-z0-9_-]{40}"),
    Service("codecov-token", "Codecov token", ("codecov",), f"{_LOW32}|{_UUID}"),
    Service("cohere-key", "Cohere API key", ("cohere", "coapikey"), "[A-Za-z0-9]{40}"),
    Service("coinbase-token", "Coinbase access token", ("coinbase",), "[A-Za-z0-9_-]{64}"),
    Service("confluent-key", "Confluent key or secret", ("confluent",), "[A-Za-z0-9]{16}|[A-Za-z0-9+/]{64}"),
    Service("contentful-delivery-token", "Contentful delivery token", ("contentful",), "[A-Za-z0-9=_-]{43}"),
    Service(
        "datadog-key",
        "Datadog API or application key",
        ("datadog", "ddapikey", "ddappkey"),
        "[a-z0-9]{32}|[a-z0-9]{40}",
    ),
    Service("discord-client", "Discord client id or secret", ("discord",), f"[a-f0-9]{{64}}|[0-9]{{17,19}}|{_ANY32}"),
    Service("droneci-token", "Drone CI token", ("drone",), _LOW32),
    Service(
        "dropbox-key",
        "Dropbox key or long-lived token",
        ("dropbox",),
        "[a-z0-9]{15}|[A-Za-z0-9]{11}AAAAAAAAAA[A-Za-z0-9_=-]{43}",
    ),
    Service("etsy-token", "Etsy access token", ("etsy",), "[a-z0-9]{24}"),
    Service("facebook-secret", "Facebook app secret", ("facebook", "fbapp"), _HEX32),
    Service("fastly-token", "Fastly API token", ("fastly",), _ANY32),
    Service("finicity-key", "Finicity token or secret", ("finicity",), f"{_HEX32}|[A-Za-z0-9]{{20}}"),
    Service("finnhub-token", "Finnhub access token", ("finnhub",), "[A-Za-z0-9]{20}"),
    Service("flickr-token", "Flickr access token", ("flickr",), _LOW32),
    Service("freemius-key", "Freemius secret key", ("freemius",), r"sk_\S{29}"),
    Service("freshbooks-token", "FreshBooks access token", ("freshbooks",), "[a-z0-9]{64}"),
    Service("gitter-token", "Gitter access token", ("gitter",), "[A-Za-z0-9_-]{40}"),
    Service("gitlab-session", "GitLab session cookie", ("gitlabsession",), "[0-9a-z]{32}"),
    Service("heroku-key", "Heroku API key, old format", ("heroku",), _UUID),
    Service("hubspot-key", "HubSpot API key", ("hubspot",), _UUID),
    Service("ibm-cloud-key", "IBM Cloud IAM key", ("ibm", "bluemix"), "[A-Za-z0-9_-]{44}"),
    Service("ibm-cos-secret", "IBM Cloud object storage HMAC secret", ("cos", "ibmcos"), "[a-f0-9]{48}"),
    Service("intercom-key", "Intercom access token", ("intercom",), "[A-Za-z0-9=_-]{60}"),
    Service(
        "jfrog-key",
        "JFrog key or identity token",
        ("jfrog", "artifactory", "bintray", "xray"),
        "[A-Za-z0-9]{73}|[A-Za-z0-9]{64}",
    ),
    Service("kraken-key", "Kraken key", ("kraken",), "[A-Za-z0-9/=_+-]{56}|[A-Za-z0-9/=_+-]{80,90}"),
    Service("kucoin-key", "KuCoin key or secret", ("kucoin",), f"[a-f0-9]{{24}}|{_UUID}"),
    Service("launchdarkly-token", "LaunchDarkly access token", ("launchdarkly",), "[A-Za-z0-9=_-]{40}"),
    Service("linear-client-secret", "Linear client secret", ("linear",), _HEX32),
    Service("linkedin-client", "LinkedIn client id or secret", ("linkedin",), "[A-Za-z0-9]{14}|[A-Za-z0-9]{16}"),
    Service("looker-client", "Looker client id or secret", ("looker",), "[A-Za-z0-9]{20}|[A-Za-z0-9]{24}"),
    Service("mailgun-signing-key", "Mailgun webhook signing key", ("mailgun",), "[a-h0-9]{32}-[a-h0-9]{8}-[a-h0-9]{8}"),
    Service("mattermost-token", "Mattermost access token", ("mattermost",), "[a-z0-9]{26}"),
    Service("messagebird-token", "MessageBird token", ("messagebird",), f"[A-Za-z0-9]{{25}}|{_UUID}"),
    Service("netlify-access-token", "Netlify access token, old format", ("netlify",), "[A-Za-z0-9_-]{40,46}"),
    Service("newrelic-api-id", "New Relic user API id", ("newrelic",), "[A-Za-z0-9]{64}"),
    Service("nytimes-token", "New York Times token", ("nytimes", "newyorktimes"), _ANY32),
    Service("okta-token", "Okta API token", ("okta",), r"00[\w=-]{40}"),
    Service("plaid-client", "Plaid client id or secret", ("plaid",), "[a-z0-9]{24}|[a-z0-9]{30}"),
    Service("privateai-token", "Private AI token", ("privateai",), _LOW32),
    Service("rapidapi-token", "RapidAPI token", ("rapidapi",), "[A-Za-z0-9_-]{50}"),
    Service("sendbird-token", "Sendbird token", ("sendbird",), f"[a-f0-9]{{40}}|{_UUID}"),
    Service("sentry-token", "Sentry token, old format", ("sentry",), "[a-f0-9]{64}"),
    Service("sidekiq-secret", "Sidekiq licence", ("contribsys",), "[a-f0-9]{8}:[a-f0-9]{8}"),
    Service("snyk-token", "Snyk API token", ("snyk",), _UUID),
    Service("softlayer-key", "IBM SoftLayer key", ("softlayer", "slapikey"), "[a-z0-9]{64}"),
    Service("sonar-login", "SonarQube token, old format", ("sonar",), "[A-Za-z0-9=_-]{40}"),
    Service("squarespace-token", "Squarespace token", ("squarespace",), _UUID),
    Service("sumologic-key", "Sumo Logic id or key", ("sumo",), "su[A-Za-z0-9]{12}|[A-Za-z0-9]{64}"),
    Service("travis-token", "Travis CI token", ("travis",), "[A-Za-z0-9_-]{22}"),
    Service("twilio-auth-token", "Twilio auth token", ("twilio",), _HEX32),
    Service("twitch-token", "Twitch token", ("twitch",), "[a-z0-9]{30}"),
    Service(
        "twitter-key",
        "Twitter (X) key, secret or token",
        ("twitter",),
        "[A-Za-z0-9]{25}|[A-Za-z0-9]{45}|[A-Za-z0-9]{50}|[0-9]{15,25}-[A-Za-z0-9]{20,40}|A{22}[A-Za-z0-9%]{80,100}",
    ),
    Service("zendesk-key", "Zendesk secret key", ("zendesk",), "[a-z0-9]{40}"),
)
