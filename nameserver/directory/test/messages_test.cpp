// Texts to and from etcd, keys and values: what is right is read, what is wrong is refused.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <tuple>
#include <vector>

#include "config.h"
#include "etcd/base64.h"
#include "etcd/etcd_messages.h"
#include "etcd/json.h"
#include "etcd/published_name.h"
#include "world.h"

namespace lrpc::directory {
namespace {

TEST(Base64, writes_and_reads_the_vectors_of_rfc_4648) {
  for (const auto& [bytes, text] : {std::pair<std::string, std::string>{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
  }
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(i));
  EXPECT_EQ(from_base64(to_base64(all)), all);
}

TEST(Base64, refuses_what_no_encoder_writes) {
  for (const char* const text : {"Z", "Zg", "Zg=", "Zg===", "Zh==", "Zm9=", "Z===", "====", "Zm9v\n", "Zm9v Zm9v",
                                 "Zg==Zm9v", "Zm-_", "\xff\xff\xff\xff"})
    EXPECT_FALSE(from_base64(text)) << text;
}

TEST(JsonOfStrangers, is_bounded_in_depth_and_has_nothing_behind_it) {
  EXPECT_TRUE(parse_json(std::string(16, '[') + std::string(16, ']')));
  EXPECT_FALSE(parse_json(std::string(100'000, '[')));
  EXPECT_TRUE(parse_json('"' + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + '"'));
  std::string many = "[{}";
  for (int i = 0; i < 300'000; ++i) many += ",{}";
  EXPECT_TRUE(parse_json(many + ']')) << "in time proportional to its length";
  EXPECT_FALSE(parse_json(std::string(1000, '[') + std::string(1000, ']')));
  for (const char* const text : {"", "{", "{}{}", "nul", "{\"a\":}", "\"\xff\"", "[1,]"})
    EXPECT_FALSE(parse_json(text)) << text;
}

TEST(JsonOfStrangers, has_integers_as_numbers_and_as_texts) {
  const auto value = parse_json(R"({"a":"12","b":12,"c":"12x","d":1.5,"e":18446744073709551615,"f":"-1","g":null})");
  ASSERT_TRUE(value);
  EXPECT_EQ(integer_of(*value, "a"), 12);
  EXPECT_EQ(integer_of(*value, "b"), 12);
  EXPECT_EQ(integer_of(*value, "f"), -1);
  for (const char* const key : {"c", "d", "e", "g", "none"}) EXPECT_FALSE(integer_of(*value, key)) << key;
}

const PublishedName kFiles{"files", 0x0a00'0002, 0x1234, {"Files", 1, 2, 0xfedc'ba98'7654'3210}};

std::optional<PublishedName> parse(const std::string& value, const std::string& key = "/lrpc/names/files/10.0.0.2") {
  return parse_published("/lrpc", key, value);
}

TEST(PublishedNames, are_read_as_they_were_written) {
  EXPECT_EQ(key_of("/lrpc", "files", kFiles.host), "/lrpc/names/files/10.0.0.2");
  const auto read = parse(value_of(kFiles));
  ASSERT_TRUE(read);
  EXPECT_EQ(read->name, "files");
  EXPECT_EQ(read->host, kFiles.host);
  EXPECT_EQ(read->instance, kFiles.instance);
  EXPECT_EQ(read->interface.name, "Files");
  EXPECT_EQ(read->interface.minor, 2);
  EXPECT_EQ(read->interface.hash, kFiles.interface.hash);
}

TEST(PublishedNames, are_ignored_where_key_or_value_is_not_right) {
  const std::string right = value_of(kFiles);
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = right;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  EXPECT_FALSE(parse(changed("10.0.0.2", "10.0.0.3"))) << "another host than the key";
  EXPECT_FALSE(parse(changed("\"format\":1", "\"format\":2")));
  EXPECT_FALSE(parse(changed("\"Files\"", "\"Fi les\"")));
  EXPECT_FALSE(parse(changed("\"Files\"", "7")));
  EXPECT_FALSE(parse(changed("fedcba98", "fedcba9x")));
  EXPECT_FALSE(parse(changed("fedcba98", "fedcba9")));
  EXPECT_FALSE(parse(changed("\"major\":1", "\"major\":65536")));
  EXPECT_FALSE(parse(changed("\"major\":1", "\"major\":-1")));
  EXPECT_FALSE(parse(right + std::string(kMostValue, ' ')));
  EXPECT_FALSE(parse("[]"));
  EXPECT_FALSE(parse(""));
  for (const char* const key : {"/lrpc/names/files", "/lrpc/names/files/", "/lrpc/names/files/10.0.0.2/x",
                                "/other/names/files/10.0.0.2", "/lrpc/names//10.0.0.2", "/lrpc/names/a@b/10.0.0.2",
                                "/lrpc/names/files/010.0.0.2", "/lrpc/names/files/10.0.0.2 "})
    EXPECT_FALSE(parse(right, key)) << key;
}

TEST(PublishedNames, have_hosts_that_one_machine_can_have) {
  EXPECT_EQ(parse_host("10.0.0.2"), 0x0a00'0002U);
  for (const char* const text : {"0.0.0.0", "0.1.2.3", "127.0.0.1", "224.0.0.1", "255.255.255.255", "10.0.0",
                                 "10.0.0.256", "::1", "host", "", "10.0.0.2\n"})
    EXPECT_FALSE(parse_host(text)) << text;
  EXPECT_FALSE(parse_host(std::string("10.0.0.2\0", 9)));
}

TEST(EtcdMessages, are_those_of_the_gateway) {
  EXPECT_EQ(range_request("/lrpc/", 3), R"({"key":"L2xycGMv","limit":3,"range_end":"L2xycGMw"})");
  EXPECT_EQ(grant_request(std::chrono::seconds(30)), R"({"TTL":30})");
  EXPECT_EQ(lease_request(77), R"({"ID":"77"})");
  const KeyValue entry{"/lrpc/", "a"};
  EXPECT_EQ(put_request(std::span(&entry, 1), 77),
            R"({"success":[{"request_put":{"key":"L2xycGMv","lease":"77","value":"YQ=="}}]})");
  EXPECT_EQ(remove_request(std::vector<KeyValue>{{"/lrpc/", ""}, {"a", ""}}, 77),
            R"({"success":[{"request_txn":{)"
            R"("compare":[{"key":"L2xycGMv","lease":"77","result":"EQUAL","target":"LEASE"}],)"
            R"("success":[{"request_delete_range":{"key":"L2xycGMv"}}]}},{"request_txn":{)"
            R"("compare":[{"key":"YQ==","lease":"77","result":"EQUAL","target":"LEASE"}],)"
            R"("success":[{"request_delete_range":{"key":"YQ=="}}]}}]})")
      << "each key has a condition of its own";
  EXPECT_EQ(watch_request("/lrpc/", 5),
            R"({"create_request":{"key":"L2xycGMv","range_end":"L2xycGMw","start_revision":"5"}})");
  EXPECT_EQ(behind_prefix("a\xff"), "b");
  EXPECT_EQ(behind_prefix("\xff"), "");
}

TEST(EtcdMessages, answers_are_read_and_what_is_no_answer_is_refused) {
  const auto range = read_range(
      R"({"header":{"revision":"9"},"kvs":[{"key":"YQ==","value":"Yg==","lease":"7"},{"key":"Yw=="}],"count":"5"})");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->found, (std::vector<KeyValue>{{"a", "b"}, {"c", ""}}));
  EXPECT_EQ(range->revision, 9);
  EXPECT_EQ(range->more, 3U);
  for (const char* const text : {"", "[]", "{}", R"({"header":{},"kvs":1})", R"({"header":{},"kvs":[{"key":"Y"}]})",
                                 R"({"header":{},"kvs":[{"key":"YQ==","value":"?"}]})", R"({"header":{},"kvs":[1]})"})
    EXPECT_EQ(read_range(text).code(), Errc::bad_message) << text;

  EXPECT_EQ(read_grant(R"({"ID":"7","TTL":"30"})")->id, 7);
  for (const char* const text : {"{}", R"({"ID":"0","TTL":"30"})", R"({"ID":"7"})", R"({"ID":"7","TTL":"-3"})"})
    EXPECT_FALSE(read_grant(text)) << text;
  EXPECT_EQ(read_keep_alive(R"({"result":{"ID":"7","TTL":"30"}})")->ttl, std::chrono::seconds(30));
  EXPECT_EQ(read_keep_alive(R"({"result":{"ID":"7"}})")->ttl, std::chrono::seconds(0)) << "the lease is lost";
  EXPECT_FALSE(read_keep_alive(R"({"ID":"7","TTL":"30"})"));
  EXPECT_EQ(read_attached(R"({"ID":"7","TTL":"3","keys":["YQ=="]})").value(), 1U);
  EXPECT_EQ(read_attached(R"({"ID":"7","TTL":"-1"})").code(), Errc::name_unknown);
  EXPECT_EQ(read_token(R"({"token":"abc.1"})").value(), "abc.1");
  EXPECT_FALSE(read_token("{\"token\":\"a\\r\\nX: y\"}")) << "nothing may end the header";
  EXPECT_FALSE(read_token(R"({"token":""})"));
}

TEST(EtcdMessages, changes_are_read_and_an_ended_watch_is_noticed) {
  const auto changes =
      read_changes(R"({"result":{"header":{"revision":"9"},"events":[{"kv":{"key":"YQ==","value":"Yg=="}},)"
                   R"({"type":"DELETE","kv":{"key":"Yw=="}}]}})");
  ASSERT_TRUE(changes);
  ASSERT_EQ(changes->changes.size(), 2U);
  EXPECT_EQ(changes->changes[0].key, "a");
  EXPECT_FALSE(changes->changes[0].removed);
  EXPECT_TRUE(changes->changes[1].removed);
  EXPECT_EQ(changes->last, 0) << "not said";
  EXPECT_EQ(read_changes(R"({"result":{"events":[{"kv":{"key":"YQ==","mod_revision":"7"}}]}})")->last, 7);
  EXPECT_EQ(read_changes(R"({"result":{"canceled":true}})").code(), Errc::remote_unavailable);
  for (const char* const reason :
       {"rpc error: code = Unauthenticated desc = etcdserver: invalid auth token", "etcdserver: permission denied"}) {
    const std::string line = R"({"result":{"created":true,"canceled":true,"cancel_reason":")" + std::string(reason);
    EXPECT_EQ(read_changes(line + "\"}}").code(), Errc::not_permitted) << reason;
  }
  EXPECT_EQ(read_changes(R"({"error":{"grpc_code":14}})").code(), Errc::remote_unavailable);
  EXPECT_EQ(read_changes(R"({"result":{"events":[{}]}})").code(), Errc::bad_message);
}

TEST(EtcdMessages, a_revision_is_one_that_another_can_follow) {
  const auto revision = [](const std::string& text) {
    return read_range("{\"header\":{\"revision\":" + text + "}}").value().revision;
  };
  EXPECT_EQ(revision("\"9223372036854775806\""), 9223372036854775806);
  for (const char* const text : {"\"9223372036854775807\"", "\"-1\"", "0", "9223372036854775808", "null"})
    EXPECT_EQ(revision(text), 0) << text;
  const auto last = [](const std::string& text) {
    return read_changes(R"({"result":{"events":[{"kv":{"key":"YQ==","mod_revision":)" + text + "}}]}}").value().last;
  };
  EXPECT_EQ(last("\"9223372036854775806\""), 9223372036854775806);
  for (const char* const text : {"\"9223372036854775807\"", "\"-1\"", "0"}) EXPECT_EQ(last(text), 0) << text;
}

TEST(EtcdMessages, a_refusal_of_etcd_3_4_and_one_of_3_6_mean_the_same) {
  const std::vector<std::tuple<long, std::string, int, Errc>> vectors{
      {404, "etcdserver: requested lease not found", 5, Errc::name_unknown},
      {400, "etcdserver: authentication failed, invalid user ID or password", 3, Errc::not_permitted},
      {400, "etcdserver: user name is empty", 3, Errc::not_permitted},
      {400, "etcdserver: authentication is not enabled", 9, Errc::not_supported},
      {401, "etcdserver: invalid auth token", 16, Errc::not_permitted},
      {403, "etcdserver: permission denied", 7, Errc::not_permitted},
      {503, "etcdserver: no leader", 14, Errc::remote_unavailable},
      {400, "etcdserver: key is not provided", 3, Errc::invalid_argument},
      {400, "etcdserver: too many operations in txn request", 3, Errc::invalid_argument}};
  for (const auto& [status, words, number, code] : vectors) {
    const std::string tail = "\"code\":" + std::to_string(number) + ",\"message\":\"" + words + "\"";
    for (const std::string& body : {"{\"error\":\"" + words + "\"," + tail + "}", "{" + tail + ",\"details\":[]}"}) {
      const Error error = error_of(status, body);
      EXPECT_EQ(error.code, code) << body;
      EXPECT_NE(error.text.find(words), std::string::npos) << error.text;
    }
  }
}

TEST(EtcdMessages, errors_of_one_kind_differ_in_nothing_but_their_times) {
  const auto kind = [](Errc code, const std::string& text) { return kind_of({code, text}); };
  EXPECT_EQ(kind(Errc::remote_unavailable, "http://a:1/v3/x: timed out after 3001 milliseconds"),
            kind(Errc::remote_unavailable, "http://a:1/v3/y: timed out after 3002 milliseconds"));
  EXPECT_NE(kind(Errc::remote_unavailable, "http://a:1/v3/x: x"), kind(Errc::remote_unavailable, "http://b:1/v3/x: x"));
  EXPECT_NE(kind(Errc::remote_unavailable, "http://a:1/v3/x: x"), kind(Errc::limit_reached, "http://a:1/v3/x: x"));
  EXPECT_NE(kind(Errc::not_permitted, "etcd refuses: a"), kind(Errc::not_permitted, "etcd refuses: b"));
}

TEST(EtcdMessages, refusals_mean_what_they_say) {
  EXPECT_EQ(error_of(503, "").code, Errc::remote_unavailable);
  EXPECT_EQ(error_of(401, R"({"error":"etcdserver: invalid auth token","code":16})").code, Errc::not_permitted);
  EXPECT_EQ(error_of(403, R"({"error":"etcdserver: permission denied","code":7})").code, Errc::not_permitted);
  EXPECT_EQ(error_of(400, R"({"error":"etcdserver: user name is empty","code":3})").code, Errc::not_permitted);
  EXPECT_EQ(error_of(404, R"({"error":"etcdserver: requested lease not found","code":5})").code, Errc::name_unknown);
  EXPECT_EQ(error_of(404, "Not Found").code, Errc::invalid_argument);
  const std::string text = error_of(400, "{\"error\":\"" + std::string(5000, 'x') + "\"}").text;
  EXPECT_LT(text.size(), 300U);
}

TEST(DirectoryConfig, is_local_unless_it_says_otherwise) {
  EXPECT_FALSE(parse_config("")->etcd);
  EXPECT_FALSE(parse_config("directory = \"local\"")->etcd);
  const auto config = parse_config(
      "directory = \"etcd\"\n[etcd]\nendpoints = [\"https://a.b:2379\", \"https://10.0.0.1:1\"]\nprefix = \"/x\"\n"
      "lease = 9\nca = \"/ca\"\n[lookup]\noldest = 0\n");
  ASSERT_TRUE(config) << config.error().message();
  EXPECT_TRUE(config->etcd);
  EXPECT_EQ(config->server.endpoints.size(), 2U);
  EXPECT_EQ(config->lease, std::chrono::seconds(9));
  EXPECT_EQ(config->oldest, std::chrono::seconds(0));
  EXPECT_EQ(port_of("http://a:2379"), 2379);
  EXPECT_EQ(port_of("https://a"), 443);
}

TEST(DirectoryConfig, says_what_is_wrong_with_it) {
  const auto error = [](const std::string& etcd) {
    return parse_config("directory = \"etcd\"\n[etcd]\n" + etcd).error().message();
  };
  const std::string plain = "endpoints = [\"http://a:1\"]\n";
  EXPECT_NE(error("").find("etcd.endpoints"), std::string::npos);
  EXPECT_NE(error("endpoints = [\"a:1\"]").find("http://HOST:PORT"), std::string::npos);
  EXPECT_NE(error("endpoints = [\"http://a:1/path\"]").find("without a path"), std::string::npos);
  EXPECT_NE(error("endpoints = [\"http://u@a:1\"]").find("http://HOST:PORT"), std::string::npos);
  EXPECT_NE(error("endpoints = [\"http://a:0\"]").find("http://HOST:PORT"), std::string::npos);
  EXPECT_NE(error(plain + "lease = 1").find("etcd.lease"), std::string::npos);
  EXPECT_NE(error(plain + "prefix = \"x\"").find("etcd.prefix"), std::string::npos);
  EXPECT_NE(error(plain + "colour = 1").find("etcd.colour: there is no such option"), std::string::npos);
  EXPECT_NE(error(plain + "user = \"u\"").find("password_file go together"), std::string::npos);
  EXPECT_NE(error(plain + "ca = \"/ca\"").find("https"), std::string::npos);
  EXPECT_NE(parse_config("directory = \"ldap\"").error().message().find("\"local\" or \"etcd\""), std::string::npos);
  EXPECT_NE(parse_config("directory = \"etcd\"").error().message().find("needs [etcd]"), std::string::npos);
  EXPECT_FALSE(parse_config("x = ["));
  EXPECT_FALSE(parse_config(std::string("\0", 1)));
  EXPECT_FALSE(parse_config("# a\n8\xce\x92"));
  EXPECT_TRUE(parse_config("# \xce\x92\ndirectory = \"local\"\n")) << "a comment may be in UTF-8";
}

TEST(DirectoryConfig, warns_of_a_password_without_tls) {
  Config config;
  config.server.endpoints = {"https://a:1", "http://b:1"};
  EXPECT_FALSE(risk_of(config));
  config.server.user = "u";
  EXPECT_NE(risk_of(config).value_or("").find("http://b:1 in plain text"), std::string::npos);
  config.server.endpoints.pop_back();
  EXPECT_FALSE(risk_of(config));
}

TEST(DirectoryConfig, takes_no_password_that_others_can_read) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string password = (directory.path() / "password").string();
  const std::string config = (directory.path() / "directory.toml").string();
  std::ofstream(password) << "secret\nmore\n";
  std::ofstream(config)
      << "directory = \"etcd\"\n[etcd]\nendpoints = [\"http://a:1\"]\nuser = \"u\"\npassword_file = \"" << password
      << "\"\n";
  std::filesystem::permissions(config, std::filesystem::perms(0644));
  std::filesystem::permissions(password, std::filesystem::perms(0640));
  EXPECT_EQ(read_config(config).code(), Errc::not_permitted);
  std::filesystem::permissions(password, std::filesystem::perms(0600));
  const auto read = read_config(config);
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->server.password, "secret");
  std::ofstream(password) << "secret\r\n";  // as an editor of another system writes it
  EXPECT_EQ(read_config(config)->server.password, "secret");
}

TEST(DirectoryConfig, names_the_file_of_tls_that_is_not_there) {
  const testing_lrpc::TemporaryDirectory directory;
  const auto file = [&](const char* name) { return (directory.path() / name).string(); };
  const auto told = [&](const std::string& kind) {
    std::ofstream(file("directory.toml"))
        << "directory = \"" << kind << "\"\n[etcd]\nendpoints = [\"https://a:1\"]\nca = \"" << file("ca.pem")
        << "\"\ncertificate = \"" << file("a.pem") << "\"\nkey = \"" << file("a.key") << "\"\n";
    std::filesystem::permissions(file("directory.toml"), std::filesystem::perms(0644));
    const auto read = read_config(file("directory.toml"));
    return read ? std::string() : read.error().message();
  };
  for (const auto& [key, name] : {std::pair{"ca", "ca.pem"}, {"certificate", "a.pem"}, {"key", "a.key"}}) {
    const std::string wrong = told("etcd");
    EXPECT_NE(wrong.find(std::string("etcd.") + key + ": cannot read " + file(name)), std::string::npos) << wrong;
    EXPECT_EQ(told("local"), "") << "nobody wants them there";
    std::ofstream(file(name)).close();
  }
  EXPECT_EQ(told("etcd"), "");
}

}  // namespace
}  // namespace lrpc::directory
