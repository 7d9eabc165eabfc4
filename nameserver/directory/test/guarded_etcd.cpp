#include "guarded_etcd.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <utility>

#include "etcd/base64.h"
#include "etcd/published_name.h"
#include "eventually.h"

namespace lrpc::directory::test {
namespace {

using namespace std::chrono_literals;

/// What an administrator does with etcdctl: again where etcd was too slow, which may have done it all the same.
void administer(const EtcdServer& server, const TlsOptions& tls, const std::string& path, const std::string& body) {
  auto http = Http::make(tls);
  ASSERT_TRUE(http);
  std::string said;
  bool again = false;
  EXPECT_TRUE(testing_lrpc::eventually([&] {
    const auto reply = http->post({.url = server.url() + path, .body = body, .token = {}, .timeout = 240s});
    said = reply ? std::to_string(reply->status) + ": " + reply->body : reply.error().message();
    constexpr int kUnavailable = 503;
    again = again || (reply && reply->status == kUnavailable);
    const auto holds = [&](const char* text) { return again && said.find(text) != std::string::npos; };
    return (reply && reply->status == 200) || holds("already exists") || holds("user name is empty");
  })) << path
      << ": " << said;
}

}  // namespace

void make_users(const EtcdServer& server, const TlsOptions& tls) {
  administer(server, tls, "/v3/auth/user/add", R"({"name":"root","password":"master"})");
  administer(server, tls, "/v3/auth/role/add", R"({"name":"root"})");
  administer(server, tls, "/v3/auth/user/grant", R"({"user":"root","role":"root"})");
  administer(server, tls, "/v3/auth/user/add", R"({"name":"lrpc","password":"se\"cret"})");
  administer(server, tls, "/v3/auth/role/add", R"({"name":"names"})");
  administer(server, tls, "/v3/auth/role/grant",
             R"({"name":"names","perm":{"permType":"READWRITE","key":")" + to_base64("/lrpc/") + R"(","range_end":")" +
                 to_base64(behind_prefix("/lrpc/")) + "\"}}");
  administer(server, tls, "/v3/auth/user/grant", R"({"user":"lrpc","role":"names"})");
  administer(server, tls, "/v3/auth/enable", "{}");
}

std::optional<std::string> Certificates::why_none() {
  if (std::system("command -v openssl > /dev/null") == 0) return std::nullopt;
  return "openssl is not here: install openssl";
}

Certificates::Certificates(const std::string& address) {
  for (const std::string authority : {"ca", "other"})
    run("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=" + authority + " -keyout " + authority +
        ".key -out " + authority + ".pem");
  for (const auto& [name, authority] : {std::pair{"server", "ca"}, {"client", "ca"}, {"stranger", "other"}}) {
    const std::string n = name;
    const std::string a = authority;
    run("openssl req -newkey rsa:2048 -nodes -subj /O=" + n + " -keyout " + n + ".key -out " + n + ".csr");
    run("printf subjectAltName=IP:" + address + " > san && openssl x509 -req -in " + n + ".csr -CA " + a +
        ".pem -CAkey " + a + ".key -CAcreateserial -days 2 -extfile san -out " + n + ".pem");
  }
  std::ofstream(file("password")) << kPassword << '\n';
  std::filesystem::permissions(file("password"), std::filesystem::perms(0600));
}

void Certificates::run(const std::string& command) const {
  ASSERT_EQ(std::system(("cd " + directory_.path().string() + " && { " + command + "; } > out 2>&1").c_str()), 0)
      << command;
}

std::vector<std::string> Certificates::of_server() const {
  return {"--cert-file",       file("server.pem"), "--key-file",        file("server.key"),
          "--trusted-ca-file", file("ca.pem"),     "--client-cert-auth"};
}

TlsOptions Certificates::of_client() const { return {file("ca.pem"), file("client.pem"), file("client.key")}; }

std::string Certificates::settings(const std::string& user) const {
  return "ca = \"" + file("ca.pem") + "\"\ncertificate = \"" + file("client.pem") + "\"\nkey = \"" +
         file("client.key") + "\"\nuser = \"" + user + "\"\npassword_file = \"" + file("password") + "\"\n";
}

}  // namespace lrpc::directory::test
