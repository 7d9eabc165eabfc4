// Reading a policy: the file, and the numbers of those whom it names.
#include <grp.h>
#include <pwd.h>

#include <utility>

#include "lrpc/detail/nameserver/policy_file.h"
#include "lrpc/detail/shim/system/own_file.h"
#include "lrpc/detail/shim/user_number.h"
#include "policy_names.h"

namespace lrpc::nameserver {
namespace {

constexpr std::size_t kLongestPolicy = 1U << 20;

// ---- As bytes: counts and lengths as decimal numbers with a space behind them, so that a dump can be read ----

void put(std::string& bytes, std::string_view text) {
  bytes.append(std::to_string(text.size())).append(" ").append(text);
}
void put(std::string& bytes, const std::map<std::string, std::optional<std::uint32_t>>& names) {
  bytes.append(std::to_string(names.size())).append(" ");
  for (const auto& [name, id] : names) {
    put(bytes, name);
    put(bytes, id ? std::to_string(*id) : std::string());
  }
}

struct Reader {
  std::string_view rest;
  bool good = true;

  std::uint32_t number() {
    const std::size_t end = rest.find(' ');
    const auto value = end != std::string_view::npos ? shim::user_number(rest.substr(0, end)) : std::nullopt;
    if (value) rest.remove_prefix(end + 1);
    good = good && value.has_value();
    return value.value_or(0);
  }
  std::string text() {
    const std::size_t size = number();
    good = good && size <= rest.size();
    if (!good) return {};
    std::string taken(rest.substr(0, size));
    rest.remove_prefix(size);
    return taken;
  }
  std::map<std::string, std::optional<std::uint32_t>> names() {
    std::map<std::string, std::optional<std::uint32_t>> taken;
    const std::uint32_t count = number();
    for (std::uint32_t i = 0; i < count && good; ++i) {
      std::string name = text();
      taken[std::move(name)] = shim::user_number(text());
    }
    return taken;
  }
};

}  // namespace

Result<PolicySource> load_policy_source(const std::string& path, uid_t own_user) {
  std::string text;
  if (auto read = shim::read_own_file(path, {.most = kLongestPolicy, .user = own_user}, text); !read)
    return read.error();
  return resolve_policy_source(path, std::move(text));
}

Result<PolicySource> resolve_policy_source(std::string path, std::string text) {
  PolicySource source{.path = std::move(path), .text = std::move(text)};
  const NamedInPolicy named = names_in_policy(source.text);
  for (const std::string& name : named.users) {
    const auto user = shim::looked_up("user '" + name + "'", [&] { return ::getpwnam(name.c_str()); });
    if (!user) return Error{user.code(), source.path + ": " + user.error().message()};
    source.users[name] = *user != nullptr ? std::optional((*user)->pw_uid) : std::nullopt;
  }
  for (const std::string& name : named.groups) {
    const auto found = shim::looked_up("group '" + name + "'", [&] { return ::getgrnam(name.c_str()); });
    if (!found) return Error{found.code(), source.path + ": " + found.error().message()};
    source.groups[name] = *found != nullptr ? std::optional((*found)->gr_gid) : std::nullopt;
  }
  return source;
}

std::string encode(const PolicySource& source) {
  std::string bytes;
  put(bytes, source.path);
  put(bytes, source.text);
  put(bytes, source.users);
  put(bytes, source.groups);
  return bytes;
}

Result<PolicySource> decode_policy_source(std::string_view bytes) {
  Reader reader{bytes};
  PolicySource source;
  source.path = reader.text();
  source.text = reader.text();
  source.users = reader.names();
  source.groups = reader.names();
  if (!reader.good || !reader.rest.empty()) return Error{Errc::bad_message, "these bytes are no policy"};
  return source;
}

}  // namespace lrpc::nameserver
