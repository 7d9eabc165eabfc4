#include "config.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <exception>
#include <initializer_list>
#include <utility>

#include "lrpc/detail/shim/system/fd.h"
#include "lrpc/detail/shim/system/own_file.h"
#include "nameserver/src/policy/toml_or_throw.h"

namespace lrpc::directory {
namespace {

constexpr std::size_t kLongestFile = 64 * 1024;
constexpr std::size_t kMostEndpoints = 16;

/// "http://HOST[:PORT]" or "https://...", without a user, a path or anything else.
bool is_endpoint(std::string_view text) {
  if (!text.starts_with("http://") && !text.starts_with("https://")) return false;
  text.remove_prefix(text.find("//") + 2);
  const std::size_t colon = text.find(':');
  const std::string_view host = text.substr(0, colon);
  const auto of_a_host = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
  };
  if (host.empty() || host.size() > 253 || !std::ranges::all_of(host, of_a_host)) return false;
  if (colon == std::string_view::npos) return true;
  const std::string_view port = text.substr(colon + 1);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  return error == std::errc() && end == port.data() + port.size() && number >= 1 && number <= 65535;
}

bool is_prefix(std::string_view text) {
  return text.size() >= 2 && text.size() <= 200 && text.front() == '/' && text.back() != '/' &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

/// Reads one table and remembers what is wrong with it.
class Reader {
 public:
  Reader(const toml::table& table, std::string name, std::string& wrong)
      : table_(table), name_(std::move(name)), wrong_(wrong) {}

  void complain(const std::string& key, const std::string& what) { wrong_ += name_ + key + ": " + what + "\n"; }
  void only(std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : table_)
      if (std::ranges::find(known, key.str()) == known.end())
        complain(std::string(key.str()), "there is no such option");
  }
  void text(const char* key, std::string& into) {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return;
    const auto* const value = node->as_string();
    if (value == nullptr || value->get().empty() || value->get().find('\0') != std::string::npos)
      return complain(key, "this is to be a text");
    into = value->get();
  }
  void seconds(const char* key, std::chrono::seconds& into, std::int64_t least, std::int64_t most) {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return;
    const auto* const value = node->as_integer();
    if (value == nullptr || value->get() < least || value->get() > most)
      return complain(key,
                      "this is to be a number of seconds, " + std::to_string(least) + " to " + std::to_string(most));
    into = std::chrono::seconds(value->get());
  }
  [[nodiscard]] const toml::table* table(const char* key) {
    const toml::node* const node = table_.get(key);
    if (node != nullptr && node->as_table() == nullptr)
      complain(key, "this is to be a table: [" + std::string(key) + "]");
    return node == nullptr ? nullptr : node->as_table();
  }
  void endpoints(std::vector<std::string>& into) {
    const toml::node* const node = table_.get("endpoints");
    const toml::array* const array = node == nullptr ? nullptr : node->as_array();
    if (array == nullptr || array->empty() || array->size() > kMostEndpoints)
      return complain("endpoints", "this is to be a list of 1 to " + std::to_string(kMostEndpoints) + " texts");
    for (const toml::node& one : *array) {
      const auto* const value = one.as_string();
      if (value == nullptr || !is_endpoint(value->get()))
        return complain("endpoints", "each is to be http://HOST:PORT or https://HOST:PORT, without a path");
      into.push_back(value->get());
    }
  }

 private:
  const toml::table& table_;
  const std::string name_;
  std::string& wrong_;
};

void read_etcd(const toml::table& table, Config& config, std::string& password_file, std::string& wrong) {
  Reader reader(table, "etcd.", wrong);
  reader.only({"endpoints", "prefix", "lease", "user", "password_file", "ca", "certificate", "key"});
  reader.endpoints(config.server.endpoints);
  reader.text("prefix", config.prefix);
  if (!is_prefix(config.prefix))
    reader.complain("prefix", "this is to begin with a '/', not to end with one, and to have no spaces");
  reader.seconds("lease", config.lease, 2, 3600);
  reader.text("user", config.server.user);
  reader.text("password_file", password_file);
  reader.text("ca", config.server.tls.ca);
  reader.text("certificate", config.server.tls.certificate);
  reader.text("key", config.server.tls.key);
  if (config.server.user.empty() != password_file.empty())
    reader.complain("user", "user and password_file go together");
  if (config.server.tls.certificate.empty() != config.server.tls.key.empty())
    reader.complain("certificate", "certificate and key go together");
  const bool tls = !config.server.tls.ca.empty() || !config.server.tls.certificate.empty();
  const bool plain =
      std::ranges::any_of(config.server.endpoints, [](const auto& one) { return one.starts_with("http://"); });
  if (tls && plain) reader.complain("endpoints", "with ca or certificate all are to be https://");
}

Result<Config> parse(std::string_view text, std::string& password_file) {
  try {
    const toml::table table = nameserver::parse_toml(text);
    Config config;
    std::string wrong;
    Reader reader(table, "", wrong);
    reader.only({"directory", "etcd", "lookup"});
    std::string kind = "local";
    reader.text("directory", kind);
    if (kind != "local" && kind != "etcd") reader.complain("directory", "this is to be \"local\" or \"etcd\"");
    config.etcd = kind == "etcd";
    if (const toml::table* const etcd = reader.table("etcd"))
      read_etcd(*etcd, config, password_file, wrong);
    else if (config.etcd)
      reader.complain("etcd", "directory = \"etcd\" needs [etcd] with endpoints");
    if (const toml::table* const lookup = reader.table("lookup")) {
      Reader lookups(*lookup, "lookup.", wrong);
      lookups.only({"oldest"});
      lookups.seconds("oldest", config.oldest, 0, 86'400);
    }
    if (!wrong.empty()) return Error{Errc::invalid_argument, wrong.substr(0, wrong.size() - 1)};
    return config;
  } catch (const toml::parse_error& error) {
    return Error{Errc::invalid_argument,
                 "line " + std::to_string(error.source().begin.line) + ": " + std::string(error.description())};
  } catch (const std::exception& error) {
    return Error{Errc::invalid_argument, error.what()};
  }
}

}  // namespace

std::uint16_t port_of(const std::string& endpoint) {
  const std::size_t colon = endpoint.rfind(':');
  unsigned number = endpoint.starts_with("https") ? 443 : 80;
  if (colon > 6) std::from_chars(endpoint.data() + colon + 1, endpoint.data() + endpoint.size(), number);
  return static_cast<std::uint16_t>(number);
}

std::optional<std::string> risk_of(const Config& config) {
  if (config.server.user.empty()) return std::nullopt;
  for (const std::string& one : config.server.endpoints)
    if (one.starts_with("http://")) return "user and password go to " + one + " in plain text: use https://";
  return std::nullopt;
}

/// Checked here, because otherwise each connection would log an error of libcurl.
Status check_tls_files(const Config& config) {
  const TlsOptions& tls = config.server.tls;
  for (const auto& [key, file] :
       {std::pair{"etcd.ca", &tls.ca}, {"etcd.certificate", &tls.certificate}, {"etcd.key", &tls.key}}) {
    if (file->empty()) continue;
    const UniqueFd opened(::open(file->c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (!opened) return system_error(std::string(key) + ": cannot read " + *file, errno);
  }
  return {};
}

Result<Config> parse_config(std::string_view text) {
  std::string password_file;
  return parse(text, password_file);
}

Result<Config> read_config(const std::string& path) {
  std::string text;
  if (auto read = shim::read_own_file(path, {.most = kLongestFile}, text); !read) return read.error();
  std::string password_file;
  auto config = parse(text, password_file);
  if (!config) return Error{config.code(), path + ": " + config.error().message()};
  if (Status there = config->etcd ? check_tls_files(*config) : Status(); !there)
    return Error{there.code(), path + ": " + there.error().message()};
  if (password_file.empty()) return config;
  if (auto read = shim::read_own_file(password_file, {.most = kLongestFile, .secret = true}, text); !read)
    return read.error();
  config->server.password = text.substr(0, text.find('\n'));
  if (config->server.password.ends_with('\r')) config->server.password.pop_back();
  if (config->server.password.empty())
    return Error{Errc::invalid_argument, password_file + ": its first line is to be the password"};
  return config;
}

}  // namespace lrpc::directory
