// A policy file that an administrator writes: rules in order; the first that matches decides. docs/POLICY.md has the
// language.
//
// A daemon in a sandbox cannot open files, so another process reads the policy for it: load_policy_source() needs the
// file system and the user database, FilePolicy::compile() needs neither.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lrpc/detail/nameserver/policy.h"

namespace lrpc::nameserver {

/// The daemon's default policy file.
inline constexpr const char* kSystemPolicy = "/etc/lrpc/policy.toml";

/// A policy's text, and the numbers of the users and groups that it names.
struct PolicySource {
  std::string path;  ///< The file's name in errors and explanations.
  std::string text;
  std::map<std::string, std::optional<uid_t>> users = {};   ///< By name. No value: no such user.
  std::map<std::string, std::optional<gid_t>> groups = {};  ///< The same.
};

/// Reads `path` and looks up the users and groups that it names. Only root and `own_user` (the nameserver's) may be
/// able to write the file. May block on the file system and the user database. Errors: not_permitted (others can write
/// the file), invalid_argument (no regular file, or too long), system_error (also if the database could not be asked).
/// compile() checks the text.
Result<PolicySource> load_policy_source(const std::string& path, uid_t own_user = ::geteuid());
/// Does the same with a text: looks up the users and groups that it names.
Result<PolicySource> resolve_policy_source(std::string path, std::string text);

/// Encodes a source for another process, and decodes it there. Error: bad_message if `bytes` are not a source.
std::string encode(const PolicySource& source);
Result<PolicySource> decode_policy_source(std::string_view bytes);

/// Immutable; any thread may call it.
class FilePolicy final : public Policy {
 public:
  enum class Action : std::uint8_t { export_name, import_name };
  enum class Who : std::uint8_t { anyone, own_user, nobody };  ///< own_user: root and the nameserver's own user.

  /// A user or a group that a rule names.
  struct Subject {
    std::string spelled;  ///< As in the file.
    std::uint32_t id = 0;
  };
  struct Rule {
    std::uint32_t line = 0;
    std::string id = {};  ///< The name that its author gave it; may be empty.
    bool allow = false;
    bool on_export = false;
    bool on_import = false;
    std::vector<std::string> names = {};  ///< Patterns.
    bool everybody = false;
    std::vector<Subject> users = {};
    std::vector<Subject> groups = {};
    /// "deny import of 'db.*' to group users".
    [[nodiscard]] std::string describe() const;
  };
  /// A decision and its reason.
  struct Decision {
    bool allowed = false;
    const Rule* rule = nullptr;  ///< Null: by the default. Valid as long as the policy.
    bool by_own_user = false;    ///< The decision depends on the nameserver's own user.
  };

  /// `otherwise` says who may export when neither a rule nor the file's default decides; `own_user` is the nameserver's
  /// own user. Errors: that of `source`; invalid_argument, whose text lists every mistake, one a line, as
  /// "path:line:column: what, and what to do". Never throws, whatever the source contains.
  static Result<std::shared_ptr<FilePolicy>> compile(Result<PolicySource> source,
                                                     ExportRule otherwise = ExportRule::own_user,
                                                     uid_t own_user = ::geteuid());

  [[nodiscard]] Status may_export(const Peer& server, std::string_view name) override;
  [[nodiscard]] Status may_import(const Peer& client, std::string_view name, const Credentials* server) override;
  [[nodiscard]] UserQuota quota(uid_t user, const UserQuota& standard) override;

  [[nodiscard]] Decision decide(Action action, const Peer& who, std::string_view name) const;
  /// The rule or default that made the decision, with the whole path: "/etc/lrpc/policy.toml:12: deny import of 'db.*'
  /// to group users". For the administrator; peers get only the file's name and the line.
  [[nodiscard]] std::string explain(Action action, const Decision& decision) const;
  /// The whole policy as text for a person. `standard`: as for quota().
  [[nodiscard]] std::string describe(const UserQuota& standard) const;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::span<const Rule> rules() const noexcept { return rules_; }

 private:
  friend class PolicyParser;
  /// The quotas that the file sets, by their names; the standard has the others.
  using QuotaChange = std::map<std::string, std::uint64_t, std::less<>>;
  struct Default {
    Who who = Who::anyone;
    std::uint32_t line = 0;  ///< 0: not said in the file.
  };

  FilePolicy() = default;
  [[nodiscard]] const Default& otherwise(Action action) const noexcept {
    return action == Action::export_name ? default_export_ : default_import_;
  }
  [[nodiscard]] static UserQuota changed(UserQuota quota, const QuotaChange& change);
  Status decided(Action action, const Peer& who, std::string_view name) const;

  std::string path_;
  std::vector<Rule> rules_;
  Default default_export_{Who::own_user, 0};
  Default default_import_{Who::anyone, 0};
  QuotaChange everybodys_;
  std::map<uid_t, std::pair<std::string, QuotaChange>> users_;  ///< With the user as spelled in the file.
  uid_t own_user_ = 0;
};

}  // namespace lrpc::nameserver
