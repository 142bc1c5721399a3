"""Credentials that their form gives away: the table of what cloud, code and model services hand out.

The forms are facts that the services publish, gathered so that all that gitleaks and detect-secrets know is known here.
"""

from __future__ import annotations

from threadline.render.redaction.rule import Rule

_UUID = "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"

CLOUDS = (
    Rule("aws-access-key-id", "AWS access key id", "AKIA", "AKIA[A-Z0-9]{16}", alone=True),
    Rule("aws-temporary-key-id", "AWS key id of a role or session", "ASIA", "ASIA[A-Z0-9]{16}", alone=True),
    Rule("aws-sts-key-id", "AWS key id of a service bearer token", "ABIA", "ABIA[A-Z0-9]{16}", alone=True),
    Rule("aws-context-key-id", "AWS context-specific credential", "ACCA", "ACCA[A-Z0-9]{16}", alone=True),
    Rule("aws-legacy-key-id", "AWS key id of the first kind", "A3T", "A3T[A-Z0-9]{17}", alone=True),
    Rule(
        "aws-bedrock-key", "Amazon Bedrock API key, long-lived", "ABSK", "ABSK[A-Za-z0-9+/]{100,270}={0,2}", alone=True
    ),
    Rule(
        "aws-bedrock-session-key",
        "Amazon Bedrock API key, short-lived",
        "bedrock-api-key-",
        "bedrock-api-key-[A-Za-z0-9+/_-]{20,}={0,2}",
    ),
    Rule("aws-mws-token", "Amazon Marketplace token", "mws.", rf"amzn\.mws\.{_UUID}", before=9),
    Rule("gcp-api-key", "Google API key", "AIza", "AIza[A-Za-z0-9_-]{35}"),
    Rule("google-oauth-secret", "Google OAuth client secret", "GOCSPX-", "GOCSPX-[A-Za-z0-9_-]{20,40}"),
    Rule("google-oauth-token", "Google OAuth access token", "ya29.", r"ya29\.[A-Za-z0-9_.-]{20,}"),
    Rule(
        "azure-devops-token",
        "Azure DevOps personal access token",
        "",
        "[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}",
        runs=(84, 84),
    ),
    Rule("alibaba-key-id", "Alibaba Cloud access key id", "LTAI", "LTAI[A-Za-z0-9]{14,24}", alone=True),
    Rule("yandex-api-key", "Yandex API key", "AQVN", "AQVN[A-Za-z0-9_-]{35,38}", alone=True),
    Rule("yandex-iam-token", "Yandex IAM token", "t1.", r"t1\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{80,90}={0,2}"),
    Rule("yandex-static-key", "Yandex static access key", "YCA", "YCA[A-Za-z0-9_-]{37}", alone=True),
    Rule("digitalocean-token", "DigitalOcean personal access token", "dop_v1_", "dop_v1_[a-f0-9]{64}"),
    Rule("digitalocean-oauth-token", "DigitalOcean OAuth token", "doo_v1_", "doo_v1_[a-f0-9]{64}"),
    Rule("digitalocean-refresh-token", "DigitalOcean refresh token", "dor_v1_", "dor_v1_[a-f0-9]{64}"),
    Rule("heroku-token", "Heroku API key", "HRKU-", "HRKU-[A-Za-z0-9_-]{30,60}"),
    Rule("flyio-token", "Fly.io access token", "fo1_", "fo1_[A-Za-z0-9_-]{43}"),
    Rule("flyio-machine-token", "Fly.io machine token", "fm1", "fm1[ar]_[A-Za-z0-9+/]{60,}={0,3}", alone=True),
    Rule("flyio-macaroon", "Fly.io macaroon", "fm2_", "fm2_[A-Za-z0-9+/]{60,}={0,3}"),
    Rule("scalingo-token", "Scalingo API token", "tk-us-", "tk-us-[A-Za-z0-9_-]{48}"),
    Rule("scaleway-key", "Scaleway access key", "SCW", "SCW[A-Z0-9]{17}", alone=True),
    Rule("render-key", "Render API key", "rnd_", "rnd_[A-Za-z0-9]{28,40}"),
    Rule("vercel-token", "Vercel token", "vcp_", "vcp_[A-Za-z0-9]{24,60}"),
    Rule("netlify-token", "Netlify personal access token", "nfp_", "nfp_[A-Za-z0-9]{36,40}"),
    Rule("cloudflare-origin-key", "Cloudflare origin CA key", "v1.0-", r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}"),
    Rule("planetscale-token", "PlanetScale API token", "pscale_tkn_", r"pscale_tkn_[\w.-]{32,64}"),
    Rule("planetscale-oauth-token", "PlanetScale OAuth token", "pscale_oauth_", r"pscale_oauth_[\w.-]{32,64}"),
    Rule("planetscale-password", "PlanetScale password", "pscale_pw_", r"pscale_pw_[\w.-]{32,64}"),
    Rule("supabase-token", "Supabase access token", "sbp_", "sbp_[a-f0-9]{40}"),
    Rule("supabase-secret-key", "Supabase secret key", "sb_secret_", "sb_secret_[A-Za-z0-9_-]{20,}"),
    Rule("clickhouse-key", "ClickHouse Cloud secret key", "4b1d", "4b1d[A-Za-z0-9]{38}", alone=True),
    Rule("databricks-token", "Databricks API token", "dapi", "dapi[a-f0-9]{32}(?:-[0-9])?", alone=True),
    Rule("aiven-token", "Aiven token", "AVNS_", "AVNS_[A-Za-z0-9_-]{15,40}"),
    Rule("openshift-token", "OpenShift user token", "sha256~", r"sha256~[\w-]{43}"),
    Rule("defined-networking-token", "Defined Networking API token", "dnkey-", "dnkey-[a-z0-9_-]{26}-[a-z0-9_-]{52}"),
    Rule("tailscale-key", "Tailscale key", "tskey-", "tskey-[a-z]+-[A-Za-z0-9]{6,}-[A-Za-z0-9]{16,}"),
    Rule("doppler-token", "Doppler personal token", "dp.pt.", r"dp\.pt\.[A-Za-z0-9]{40,44}"),
    Rule(
        "doppler-service-token", "Doppler service token", "dp.st.", r"dp\.st\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}"
    ),
    Rule("terraform-token", "Terraform Cloud token", "atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,70}", 15),
    Rule("pulumi-token", "Pulumi access token", "pul-", "pul-[a-f0-9]{40}", alone=True),
    Rule("vault-service-token", "Vault service token", "hvs.", r"hvs\.[\w-]{24,200}"),
    Rule("vault-batch-token", "Vault batch token", "hvb.", r"hvb\.[\w-]{60,400}"),
    Rule("vault-recovery-token", "Vault recovery token", "hvr.", r"hvr\.[\w-]{24,200}"),
    Rule(
        "vault-legacy-token", "Vault token before 1.10", "s.", r"s\.(?=[A-Za-z]*[0-9])[A-Za-z0-9]{24}(?!\w)", alone=True
    ),
    Rule("infracost-token", "Infracost API token", "ico-", "ico-[A-Za-z0-9]{32}", alone=True),
    Rule(
        "harness-personal-token", "Harness personal token", "pat.", r"pat\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"
    ),
    Rule("harness-service-token", "Harness service token", "sat.", r"sat\.[\w-]{22}\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{20}"),
    Rule("octopus-key", "Octopus Deploy API key", "API-", "API-[A-Z0-9]{26,32}", alone=True),
)

CODE = (
    Rule("github-token", "GitHub personal access token", "ghp_", "ghp_[A-Za-z0-9]{36,255}"),
    Rule("github-fine-grained-token", "GitHub fine-grained token", "github_pat_", "github_pat_[A-Za-z0-9_]{36,255}"),
    Rule("github-oauth-token", "GitHub OAuth token", "gho_", "gho_[A-Za-z0-9]{36,255}"),
    Rule("github-user-token", "GitHub token of an app for a user", "ghu_", "ghu_[A-Za-z0-9]{36,255}"),
    Rule("github-app-token", "GitHub token of an app's installation", "ghs_", "ghs_[A-Za-z0-9]{36,255}"),
    Rule("github-refresh-token", "GitHub refresh token", "ghr_", "ghr_[A-Za-z0-9]{36,255}"),
    Rule(
        "gitlab-token", "GitLab personal access token", "glpat-", r"glpat-[\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?"
    ),
    Rule("gitlab-trigger-token", "GitLab pipeline trigger token", "glptt-", "glptt-[0-9a-f]{40}"),
    Rule("gitlab-runner-token", "GitLab runner token", "glrt-", r"glrt-[\w-]{20,300}(?:\.[0-9a-z]{2}\.?[0-9a-z]{7})?"),
    Rule("gitlab-runner-registration", "GitLab runner registration token", "GR1348941", r"GR1348941[\w-]{20}"),
    Rule("gitlab-deploy-token", "GitLab deploy token", "gldt-", r"gldt-[\w-]{20,64}"),
    Rule("gitlab-feed-token", "GitLab feed token", "glft-", r"glft-[\w-]{20,64}"),
    Rule("gitlab-feature-flag-token", "GitLab feature flag token", "glffct-", r"glffct-[\w-]{20,64}"),
    Rule("gitlab-mail-token", "GitLab incoming mail token", "glimt-", r"glimt-[\w-]{25,64}"),
    Rule("gitlab-agent-token", "GitLab agent token", "glagent-", r"glagent-[\w-]{50,70}"),
    Rule("gitlab-oauth-secret", "GitLab OAuth application secret", "gloas-", r"gloas-[\w-]{64}"),
    Rule("gitlab-job-token", "GitLab job token", "glcbt-", r"glcbt-[0-9A-Za-z]{1,5}_[\w-]{20,64}"),
    Rule("gitlab-scim-token", "GitLab SCIM token", "glsoat-", r"glsoat-[\w-]{20,64}"),
    Rule("atlassian-token", "Atlassian API token", "ATATT3", "ATATT3[A-Za-z0-9_-]{40,240}(?:=[A-Fa-f0-9]{8})?"),
    Rule("bitbucket-token", "Bitbucket access token", "ATCTT3", "ATCTT3[A-Za-z0-9_-]{40,240}(?:=[A-Fa-f0-9]{8})?"),
    Rule("bitbucket-app-password", "Bitbucket app password", "ATBB", "ATBB[A-Za-z0-9]{32}", alone=True),
    Rule("npm-token", "npm access token", "npm_", "npm_[A-Za-z0-9]{36}"),
    Rule("pypi-token", "PyPI upload token", "pypi-", "pypi-Ag[A-Za-z0-9_-]{50,1000}"),
    Rule("rubygems-token", "RubyGems API token", "rubygems_", "rubygems_[a-f0-9]{48}"),
    Rule("clojars-token", "Clojars deploy token", "CLOJARS_", "CLOJARS_[A-Za-z0-9]{60}"),
    Rule("nuget-key", "NuGet API key", "oy2", "oy2[a-z0-9]{43}", alone=True),
    Rule("crates-token", "crates.io token", "cio", "cio[A-Za-z0-9]{32}", alone=True),
    Rule("docker-token", "Docker Hub personal access token", "dckr_pat_", "dckr_pat_[A-Za-z0-9_-]{27,}"),
    Rule("artifactory-key", "Artifactory API key", "AKCp", "AKCp[A-Za-z0-9]{66,73}", alone=True),
    Rule(
        "artifactory-password",
        "Artifactory encrypted password",
        "AP",
        "AP[0-9A-F](?=[A-Za-z]*[0-9])[A-Za-z0-9]{30,80}",
        alone=True,
    ),
    Rule("artifactory-reference-token", "Artifactory reference token", "cmVmd", "cmVmd[A-Za-z0-9]{59}", alone=True),
    Rule("circleci-token", "CircleCI personal token", "CCIPAT_", "CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}"),
    Rule("buildkite-token", "Buildkite access token", "bkua_", "bkua_[a-f0-9]{40}"),
    Rule("sonar-token", "SonarQube user token", "squ_", "squ_[a-f0-9]{40}"),
    Rule("sonar-project-token", "SonarQube project token", "sqp_", "sqp_[a-f0-9]{40}"),
    Rule("sonar-analysis-token", "SonarQube analysis token", "sqa_", "sqa_[a-f0-9]{40}"),
    Rule("sourcegraph-token", "Sourcegraph access token", "sgp_", "sgp_(?:(?:[a-fA-F0-9]{16}|local)_)?[a-fA-F0-9]{40}"),
    Rule("postman-key", "Postman API key", "PMAK-", "PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}"),
    Rule("postman-collection-key", "Postman collection key", "PMAT-", "PMAT-[A-Z0-9]{26}"),
    Rule("readme-token", "ReadMe API token", "rdme_", "rdme_[a-z0-9]{70}"),
    Rule("prefect-token", "Prefect API token", "pnu_", "pnu_[A-Za-z0-9]{36}"),
    Rule("figma-token", "Figma personal access token", "figd_", "figd_[A-Za-z0-9_-]{38,50}"),
    Rule("age-secret-key", "age secret key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    Rule(
        "1password-key",
        "1Password secret key",
        "A3-",
        "A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    Rule("1password-service-token", "1Password service account token", "ops_", "ops_eyJ[A-Za-z0-9+/]{100,}={0,3}"),
    Rule(
        "authress-key",
        "Authress service key",
        "acc",
        r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]{10,32}\.[A-Za-z0-9+/_-]{30,120}={0,2}",
        50,
    ),
)

MODELS = (
    Rule("anthropic-key", "Anthropic API key", "sk-ant-", "sk-ant-[A-Za-z0-9_-]{20,200}"),
    Rule("openai-project-key", "OpenAI project key", "sk-proj-", "sk-proj-[A-Za-z0-9_-]{20,300}"),
    Rule("openai-service-key", "OpenAI service account key", "sk-svcacct-", "sk-svcacct-[A-Za-z0-9_-]{20,300}"),
    Rule("openai-admin-key", "OpenAI admin key", "sk-admin-", "sk-admin-[A-Za-z0-9_-]{20,300}"),
    Rule("openrouter-key", "OpenRouter API key", "sk-or-", "sk-or-(?:v[0-9]-)?[A-Za-z0-9]{32,80}"),
    Rule(
        "openai-key",
        "OpenAI API key, and what was modelled on it",
        "sk-",
        "sk-(?=[A-Za-z_-]*[0-9])[A-Za-z0-9]{20,64}",
        alone=True,
    ),
    Rule("perplexity-key", "Perplexity API key", "pplx-", "pplx-[A-Za-z0-9]{48,56}"),
    Rule("groq-key", "Groq API key", "gsk_", "gsk_[A-Za-z0-9]{48,56}"),
    Rule("xai-key", "xAI API key", "xai-", "xai-[A-Za-z0-9]{60,90}"),
    Rule("nvidia-key", "NVIDIA API key", "nvapi-", "nvapi-[A-Za-z0-9_-]{60,80}"),
    Rule("replicate-token", "Replicate API token", "r8_", "r8_[A-Za-z0-9]{37,40}", alone=True),
    Rule("huggingface-token", "Hugging Face access token", "hf_", "hf_[A-Za-z0-9]{34,40}", alone=True),
    Rule("huggingface-org-token", "Hugging Face organisation token", "api_org_", "api_org_[A-Za-z0-9]{34,40}"),
    Rule("langsmith-key", "LangSmith API key", "lsv2_", "lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    Rule("tavily-key", "Tavily API key", "tvly-", "tvly-(?:[a-z]+-)?[A-Za-z0-9]{24,40}"),
    Rule("elevenlabs-key", "ElevenLabs API key", "sk_", "sk_[a-f0-9]{48}(?![A-Za-z0-9])", alone=True),
)
