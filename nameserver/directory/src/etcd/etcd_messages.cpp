#include "etcd/etcd_messages.h"

#include <algorithm>
#include <limits>

#include "etcd/base64.h"
#include "etcd/json.h"
#include "lrpc/detail/shim/printable.h"

namespace lrpc::directory {
namespace {

// gRPC's status codes.
constexpr std::int64_t kInvalidArgument = 3;
constexpr std::int64_t kNotFound = 5;
constexpr std::int64_t kPermissionDenied = 7;
constexpr std::int64_t kFailedPrecondition = 9;
constexpr std::int64_t kUnauthenticated = 16;

Error malformed(std::string_view what) {
  return {Errc::bad_message, "etcd's answer is no " + std::string(what) + " of its API"};
}

/// A positive revision that another one can follow, or 0.
std::int64_t revision_of(const Json& object, const char* key) {
  const std::int64_t revision = integer_of(object, key).value_or(0);
  return revision > 0 && revision < std::numeric_limits<std::int64_t>::max() ? revision : 0;
}

/// The error of a cancelled watch. etcd answers a watch that it refuses with status 200 and the reason as text.
Error end_of_watch(const Json& result) {
  const std::string_view reason = text_of(result, "cancel_reason").value_or("");
  for (const char* const refusal : {"invalid auth token", "permission denied", "user name is empty"})
    if (reason.find(refusal) != std::string_view::npos)
      return {Errc::not_permitted, "etcd refuses: " + shim::printable(reason)};
  return {Errc::remote_unavailable, "etcd has ended the watch"};
}

Result<Lease> lease_of(const Json& answer) {
  const auto id = integer_of(answer, "ID");
  const std::int64_t ttl = integer_of(answer, "TTL").value_or(0);  // protobuf omits zeros
  if (!id || *id == 0 || ttl < 0 || ttl > 1'000'000'000) return malformed("lease");
  return Lease{*id, std::chrono::seconds(ttl)};
}

}  // namespace

std::string kind_of(const Error& error) {
  const std::string_view text = error.text;
  const std::size_t scheme = text.starts_with("http") ? text.find("://") : std::string_view::npos;
  const std::size_t end = scheme == std::string_view::npos ? scheme : text.find('/', scheme + 3);
  return std::string(describe(error.code)).append(" ").append(text.substr(0, end));
}

std::string behind_prefix(std::string prefix) {
  while (!prefix.empty() && static_cast<unsigned char>(prefix.back()) == 0xff) prefix.pop_back();
  if (!prefix.empty()) prefix.back() = static_cast<char>(static_cast<unsigned char>(prefix.back()) + 1);
  return prefix;
}

std::string range_request(const std::string& prefix, std::size_t limit) {
  return Json({{"key", to_base64(prefix)}, {"range_end", to_base64(behind_prefix(prefix))}, {"limit", limit}}).dump();
}

Result<Range> read_range(std::string_view body) {
  const auto answer = parse_json(body);
  const Json* const header = answer ? member(*answer, "header") : nullptr;
  if (header == nullptr) return malformed("range");
  Range range;
  range.revision = revision_of(*header, "revision");
  const Json* const found = member(*answer, "kvs");
  if (found != nullptr) {
    if (!found->is_array()) return malformed("range");
    for (const Json& one : *found) {
      auto key = bytes_of(one, "key");
      // An empty value is omitted.
      auto value = member(one, "value") == nullptr ? std::string() : bytes_of(one, "value");
      if (!key || !value) return malformed("range");
      range.found.push_back({*std::move(key), *std::move(value)});
    }
  }
  const std::int64_t count = integer_of(*answer, "count").value_or(0);
  const auto here = static_cast<std::int64_t>(range.found.size());
  if (count > here) range.more = static_cast<std::uint64_t>(count - here);
  return range;
}

std::string grant_request(std::chrono::seconds ttl) { return Json({{"TTL", ttl.count()}}).dump(); }
std::string lease_request(LeaseId lease) { return Json({{"ID", std::to_string(lease)}}).dump(); }
std::string attached_request(LeaseId lease) { return Json({{"ID", std::to_string(lease)}, {"keys", true}}).dump(); }

Result<Lease> read_grant(std::string_view body) {
  const auto answer = parse_json(body);
  if (!answer) return malformed("lease");
  auto lease = lease_of(*answer);
  if (lease && lease->ttl.count() == 0) return malformed("lease");
  return lease;
}

Result<Lease> read_keep_alive(std::string_view body) {
  const auto answer = parse_json(body);
  const Json* const result = answer ? member(*answer, "result") : nullptr;  // a stream encloses each message in one
  if (result == nullptr) return malformed("answer to a keep-alive");
  return lease_of(*result);
}

Result<std::size_t> read_attached(std::string_view body) {
  const auto answer = parse_json(body);
  if (!answer || !integer_of(*answer, "ID")) return malformed("lease");
  if (integer_of(*answer, "TTL").value_or(0) < 0) return Error{Errc::name_unknown, "etcd has no such lease any more"};
  const Json* const keys = member(*answer, "keys");
  if (keys == nullptr) return std::size_t{0};
  if (!keys->is_array()) return malformed("lease");
  return keys->size();
}

std::string put_request(std::span<const KeyValue> entries, LeaseId lease) {
  Json operations = Json::array();
  for (const KeyValue& entry : entries) {
    Json put({{"key", to_base64(entry.key)}, {"value", to_base64(entry.value)}, {"lease", std::to_string(lease)}});
    operations.push_back(Json({{"request_put", std::move(put)}}));
  }
  return Json({{"success", std::move(operations)}}).dump();
}

std::string remove_request(std::span<const KeyValue> entries, LeaseId lease) {
  Json operations = Json::array();
  for (const KeyValue& entry : entries) {
    const std::string key = to_base64(entry.key);
    Json condition({{"target", "LEASE"}, {"result", "EQUAL"}, {"key", key}, {"lease", std::to_string(lease)}});
    Json remove({{"request_delete_range", Json({{"key", key}})}});
    Json one = Json::object();  // a nested transaction: its condition applies to this key alone
    one["compare"] = Json::array({std::move(condition)});
    one["success"] = Json::array({std::move(remove)});
    operations.push_back(Json({{"request_txn", std::move(one)}}));
  }
  return Json({{"success", std::move(operations)}}).dump();
}

Status read_transaction(std::string_view body) {
  const auto answer = parse_json(body);
  if (!answer || member(*answer, "header") == nullptr) return malformed("transaction");
  return {};
}

std::string authenticate_request(const std::string& user, const std::string& password) {
  return Json({{"name", user}, {"password", password}}).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::string> read_token(std::string_view body) {
  const auto answer = parse_json(body);
  const auto token = answer ? text_of(*answer, "token") : std::nullopt;
  // The token is sent in an HTTP header: accept nothing that could end it.
  const auto visible = [](char c) { return c > ' ' && c <= '~'; };
  if (!token || token->empty() || token->size() > 4096 || !std::ranges::all_of(*token, visible))
    return malformed("token");
  return std::string(*token);
}

std::string watch_request(const std::string& prefix, std::int64_t from) {
  Json create({{"key", to_base64(prefix)},
               {"range_end", to_base64(behind_prefix(prefix))},
               {"start_revision", std::to_string(from)}});
  return Json({{"create_request", std::move(create)}}).dump();
}

Result<Changes> read_changes(std::string_view line) {
  const auto answer = parse_json(line);
  if (!answer) return malformed("watch");
  const Json* const result = member(*answer, "result");
  if (result == nullptr) {
    if (member(*answer, "error") != nullptr) return Error{Errc::remote_unavailable, "etcd has ended the watch"};
    return malformed("watch");
  }
  if (const Json* const canceled = member(*result, "canceled"); canceled != nullptr && *canceled == Json(true))
    return end_of_watch(*result);
  Changes changes;
  const Json* const events = member(*result, "events");
  if (events == nullptr) return changes;
  if (!events->is_array()) return malformed("watch");
  for (const Json& event : *events) {
    const Json* const entry = member(event, "kv");
    auto key = entry == nullptr ? std::nullopt : bytes_of(*entry, "key");
    if (!key) return malformed("watch");
    changes.changes.push_back({*std::move(key), text_of(event, "type") == "DELETE"});
    changes.last = std::max(changes.last, revision_of(*entry, "mod_revision"));
  }
  return changes;
}

Error error_of(long status, std::string_view body) {
  const auto answer = parse_json(body);
  std::int64_t code = 0;
  std::string words = "HTTP status " + std::to_string(status);
  if (answer) {
    code = integer_of(*answer, "code").value_or(0);
    // etcd 3.4 sends both "error" and "message"; from 3.6 on only the latter.
    auto said = text_of(*answer, "error");
    if (!said) said = text_of(*answer, "message");
    if (said) words += ": " + shim::printable(*said);
  } else if (const auto line = body.substr(0, body.find('\n')); !line.empty()) {
    words += ": " + shim::printable(line);
  }
  const std::string text = "etcd refuses: " + words;
  if (status == 401 || status == 403 || code == kPermissionDenied || code == kUnauthenticated)
    return {Errc::not_permitted, text};
  if (code == kNotFound) return {Errc::name_unknown, text};
  // etcd's texts if it requires a user and none is given, and if user or password is wrong.
  if (code == kInvalidArgument && (words.ends_with("user name is empty") || words.find("auth") != std::string::npos))
    return {Errc::not_permitted, text};
  if (code == kFailedPrecondition && words.find("authentication is not enabled") != std::string::npos)
    return {Errc::not_supported, text};
  if (status >= 500 || status == 429 || status == 408) return {Errc::remote_unavailable, text};
  return {Errc::invalid_argument, text};
}

}  // namespace lrpc::directory
