// A policy that an administrator writes down: rules in order, the first that matches decides. docs/POLICY.md has the
// language.
//
// Reading, looking up and deciding are three steps, so that a daemon which may not open files any more can have the
// first two done by somebody else: load_policy_source() needs the file system and the user database,
// FilePolicy::compile() needs nothing.
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

#include "lrpc/nameserver/policy.h"

namespace lrpc::nameserver {

/// Where the daemon looks for its policy if it is not told.
inline constexpr const char* kSystemPolicy = "/etc/lrpc/policy.toml";

/// A policy's text, and the numbers of the users and groups that it names.
struct PolicySource {
  std::string path;  ///< What errors and explanations call it.
  std::string text;
  std::map<std::string, std::optional<uid_t>> users = {};   ///< By name; none: there is no such user.
  std::map<std::string, std::optional<gid_t>> groups = {};  ///< The same.
};

/// Reads `path`, which must be a regular file that nobody but root and `own_user` (who the nameserver runs as) can
/// write, and looks up whom it names. May block on file system and user database. Errors: not_permitted (others could write it),
/// invalid_argument (no regular file, too long), system_error. What the text says is compile()'s to judge.
Result<PolicySource> load_policy_source(const std::string& path, uid_t own_user = ::geteuid());
/// The same of a text that is here already: looks up whom it names.
PolicySource resolve_policy_source(std::string path, std::string text);

/// A source as bytes, and back: how it travels between processes. bad_message if it is none.
std::string encode(const PolicySource& source);
Result<PolicySource> decode_policy_source(std::string_view bytes);

/// Immutable; may be asked in any thread.
class FilePolicy final : public Policy {
 public:
  enum class Action : std::uint8_t { export_name, import_name };
  enum class Who : std::uint8_t { anyone, own_user, nobody };  ///< own_user: root and the nameserver's.

  /// A user or a group that a rule is about.
  struct Subject {
    std::string spelled;  ///< As in the file.
    std::uint32_t id = 0;
  };
  struct Rule {
    std::uint32_t line = 0;
    std::string id = {};  ///< What its author calls it; may be empty.
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
  /// What is decided, and by what.
  struct Decision {
    bool allowed = false;
    const Rule* rule = nullptr;  ///< Null: by the default. Valid as long as the policy.
    bool by_own_user = false;    ///< It depends on who the nameserver's own user is.
  };

  /// `otherwise` says who may export where neither a rule nor the file's default does; `own_user`: who the nameserver
  /// runs as. invalid_argument: the text has
  /// every error that was found, one a line, as "path:line:column: what, and what to do". Never throws, whatever the
  /// source holds.
  static Result<std::shared_ptr<FilePolicy>> compile(PolicySource source, ExportRule otherwise = ExportRule::own_user,
                                                     uid_t own_user = ::geteuid());

  [[nodiscard]] Status may_export(const Peer& server, std::string_view name) override;
  [[nodiscard]] Status may_import(const Peer& client, std::string_view name, const Credentials* server) override;
  [[nodiscard]] UserQuota quota(uid_t user, const UserQuota& standard) override;

  [[nodiscard]] Decision decide(Action action, const Peer& who, std::string_view name) const;
  /// By whom or what a decision was made, with the whole path: "/etc/lrpc/policy.toml:12: deny import of 'db.*' to
  /// group users". For the administrator; what peers are told has the file's name and the line alone.
  [[nodiscard]] std::string explain(Action action, const Decision& decision) const;
  /// All of it, for a person. `standard`: as for quota().
  [[nodiscard]] std::string describe(const UserQuota& standard) const;

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] std::span<const Rule> rules() const noexcept { return rules_; }

 private:
  friend class PolicyParser;
  /// Which quotas the file sets; the others are the standard's.
  struct QuotaChange {
    std::map<std::string, std::uint64_t, std::less<>> values = {};
    [[nodiscard]] UserQuota applied_to(UserQuota quota) const;
  };
  struct Default {
    Who who = Who::anyone;
    std::uint32_t line = 0;  ///< 0: not said in the file.
  };

  FilePolicy() = default;
  [[nodiscard]] const Default& otherwise(Action action) const noexcept {
    return action == Action::export_name ? default_export_ : default_import_;
  }
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
