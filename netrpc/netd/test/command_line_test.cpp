// What lrpc-netd prints and refuses when it needs no network.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>

#include "run.h"
#include "world.h"

namespace lrpc::netd::test {
namespace {

const std::string kNetd = LRPC_NETD;

TEST(NetdCommandLine, makes_keys) {
  const Ran first = run(kNetd + " --generate-key");
  EXPECT_EQ(first.status, 0);
  EXPECT_EQ(first.output.size(), 45U);
  EXPECT_NE(first.output, run(kNetd + " --generate-key").output);
}

TEST(NetdCommandLine, checks_and_draws_graphs) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  std::ofstream(file)
      << "eth = ETH;\nfragment = FRAGMENT over eth;\nchannel = CHANNEL over fragment;\nselect = SELECT over channel;\n";
  const Ran good = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(good.status, 0) << good.output;
  EXPECT_NE(run(kNetd + " --picture text --graph " + file).output.find("| FRAGMENT |"), std::string::npos);
  EXPECT_NE(run(kNetd + " --picture svg --graph " + file).output.find("<svg"), std::string::npos);
  std::ofstream(file) << "eth = ETH;\nchannel = CHANEL over eth;\n";
  const Ran bad = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.output.find(file + ":2: "), std::string::npos) << bad.output;
}

TEST(NetdCommandLine, lists_what_a_graph_can_name) {
  const Ran listed = run(kNetd + " --protocols");
  EXPECT_EQ(listed.status, 0);
  for (const std::string line : {"CHANNEL: request and reply, at most once\n",
                                 "  packet_life (duration): the longest that a packet can be under way; default 60s\n",
                                 "  peers (number, 1 to 65536): sessions at one time; default 256\n",
                                 "  keys (text, required): ", "  { FIFO }\n"})
    EXPECT_NE(listed.output.find("\n" + line), std::string::npos) << line << listed.output;
}

TEST(NetdCommandLine, names_the_option_of_an_interface_that_is_not_there) {
  EXPECT_EQ(run(kNetd + " --insecure --interface nope").output, "lrpc-netd: --interface: there is no interface nope\n");
}

TEST(NetdCommandLine, says_in_one_line_why_the_built_in_graph_cannot_be) {
  const Ran ran = run(kNetd + " --udp --address 127.0.0.1 --keys /nowhere/keys");
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(ran.output.ends_with("/nowhere/keys: No such file or directory\n")) << ran.output;
}

TEST(NetdCommandLine, refuses_a_graph_whose_peers_may_have_any_port) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  std::ofstream(file) << "udp = UDP(peer_ports = any);\npaired = PAIRED over udp;\nselect = SELECT over paired;\n";
  const Ran ran = run(kNetd + " --graph " + file);
  EXPECT_EQ(ran.status, 1);
  EXPECT_EQ(run(kNetd + " --picture text --graph " + file).status, 0) << "others may use it";
  EXPECT_NE(ran.output.find("'select' has peers at any port"), std::string::npos) << ran.output;
}

/// Writes a file of keys that lrpc-netd accepts.
std::string make_keys(const testing_lrpc::TemporaryDirectory& directory) {
  std::string file = (directory.path() / "keys").string();
  std::ofstream(file) << "* " << run(kNetd + " --generate-key").output;
  EXPECT_EQ(::chmod(file.c_str(), 0600), 0);
  return file;
}

TEST(NetdCommandLine, takes_a_graph_whose_peers_may_have_any_port_where_auth_knows_them_by_their_keys) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  const std::string above = "auth = AUTH(keys = \"" + make_keys(directory) +
                            "\") over device;\npaired = PAIRED over auth;\nselect = SELECT over paired;\n";
  std::ofstream(file) << "device = UDP(peer_ports = any);\n" << above;
  const Ran good = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(good.status, 0) << good.output;
  std::ofstream(file) << "tcp = TCP;\ndevice = TRACE over tcp;\n" << above;
  const Ran bad = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(bad.status, 1);
  EXPECT_NE(bad.output.find(":3: 'device' has to be told the port of each peer"), std::string::npos) << bad.output;
}

TEST(NetdCommandLine, refuses_a_graph_that_may_execute_a_call_twice) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  std::ofstream(file) << "udp = UDP;\npairs = REQUEST_REPLY over udp;\ncall = SUN_CALL over pairs;\n"
                      << "sun = SUN_SELECT(program = 9) over call;\n";
  const Ran ran = run(kNetd + " --graph " + file);
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("'sun' may execute a call several times"), std::string::npos) << ran.output;
}

/// --check reports everything with which lrpc-netd refuses to start, not only errors of the graph language.
TEST(NetdCommandLine, checks_a_graph_by_the_rules_by_which_it_starts) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  const std::string calls =
      "udp = UDP(address = \"127.0.0.1\"); channel = CHANNEL over udp; select = SELECT over channel;\n";
  const std::string keys = make_keys(directory);
  const auto group_over = [&](const std::string& inside, const std::string& members, const std::string& below = "udp") {
    return calls + "auth = AUTH(keys = \"" + keys + "\") over udp; c = COMPOSITE { GRPC; SYNC; " + inside + " } over " +
           below + ";\ns = SELECT(number = 240) over c; g = GROUP(members = [" + members + "]) over s;\n";
  };
  const std::string good = "ONE_ACCEPT; NUMBER; UNIQUE; BOUNDED;";
  struct Case {
    std::string graph;
    std::string options;
    std::string said;  ///< After the file's name.
  };
  const Case cases[] = {
      {"udp = UDP(peer_ports = any);\npaired = PAIRED over udp;\nselect = SELECT over paired;\n", "",
       ": 'select' has peers at any port"},
      {"udp = UDP;\npairs = REQUEST_REPLY over udp;\ncall = SUN_CALL over pairs;\nsun = SUN_SELECT(program = 9) over "
       "call;\n",
       "", ": 'sun' may execute a call several times"},
      {"udp = UDP;\n", "", ": no instance gives a transaction service"},
      {calls, "--service udp", ": no instance 'udp' gives a transaction service"},
      {calls, "--sun files=5", ": no instance is a SUN_SELECT"},
      {calls, "--sun-import files@10.0.0.1=5", ": no instance is a SUN_SELECT over UDP(peer_ports = any)"},
      {calls + "any = UDP(peer_ports = any);\npairs = REQUEST_REPLY over any;\nof_sun = SUN_CALL over pairs;\n"
               "sun = SUN_SELECT over of_sun;\n",
       "--sun-import files@10.0.0.1:9=5,tcp", ": no instance is a SUN_SELECT over TCP"},
      {calls + "g = GROUP(members = [127.0.0.2]) over select;", "",
       ": 'g' stands on 'select', which calls one host at"},
      {group_over("ONE_ACCEPT; BOUNDED;", "127.0.0.2"), "", ": 'g' may execute a call several times"},
      {group_over("ONE_ACCEPT; NUMBER; UNIQUE; ACK;", "127.0.0.2"), "",
       ": calls through 'c' may wait for a dead member"},
      {group_over(good, "127.0.0.2", "auth"), "", ": 'g' and 'select' do not stand on the same AUTH"},
      {group_over(good, ""), "", ":3: g: a group needs members"},
      {group_over(good, "127.0.0.2, 127.0.0.2"), "", ":3: g: the member 127.0.0.2 is there twice"},
      {calls + "u = USER(name = a, number = 239) over udp;", "", ":2: u: number is not from 240 to 252"},
      {calls + "u = USER(name = a, number = 245, queue = 0) over udp;", "", ":2: u: queue is not from 1 to 65536"},
      {calls + "u = USER(name = \"a b\", number = 245) over udp;", "",
       ":2: u: name is not one that can be exported as 'lrpc.user.a b'"},
      {calls + "u = USER(name = a, number = 245) over udp;\nv = USER(name = a, number = 246) over udp;", "",
       ":3: v: another USER has the name 'a'"},
      {group_over(good, "127.0.0.2, here"), "", ":3: g: 'here' is no IPv4 address of a member"},
  };
  for (const Case& one : cases) {
    std::ofstream(file) << one.graph;
    const Ran checked = run(kNetd + " --check --graph " + file + " " + one.options);
    EXPECT_EQ(checked.status, 1) << one.said;
    ASSERT_TRUE(checked.output.starts_with(file + one.said)) << checked.output;
    const Ran started = run(kNetd + " --sandbox off --graph " + file + " " + one.options);
    EXPECT_EQ(started.status, 1) << one.said;
    EXPECT_NE(started.output.find("lrpc-netd: " + checked.output), std::string::npos) << started.output;
  }
  std::ofstream(file) << group_over(good, "127.0.0.2, 127.0.0.3");
  const Ran right = run(kNetd + " --check --graph " + file);
  EXPECT_EQ(right.status, 0) << right.output;
}

TEST(NetdCommandLine, serves_sun_rpc_only_where_the_graph_can) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = (directory.path() / "graph").string();
  std::ofstream(file) << "udp = UDP;\npaired = PAIRED over udp;\nselect = SELECT over paired;\n";
  const Ran ran = run(kNetd + " --graph " + file + " --sun files=0x20000000");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find(file + ": no instance is a SUN_SELECT"), std::string::npos) << ran.output;
  for (const std::string wrong : {"files", "files=", "files=0", "=5", "files=1/x", "files=1/2/3", "files=0x100000000",
                                  "lrpc.files=5", "files=-1", "files=1/"}) {
    const Ran refused = run(kNetd + " --insecure --udp --address 127.0.0.1 --check --sun " + wrong);
    EXPECT_EQ(refused.status, 1) << wrong;
    EXPECT_NE(refused.output.find("--sun: '" + wrong + "': write NAME=PROGRAM"), std::string::npos) << refused.output;
  }
  const Ran checked = run(kNetd + " --check --graph " + file + " --sun files=0");
  EXPECT_EQ(checked.status, 1) << checked.output;
  const Ran twice = run(kNetd + " --insecure --udp --address 127.0.0.1 --check --sun a=5 b=5/2 c=0x5/2");
  EXPECT_EQ(twice.status, 1);
  EXPECT_NE(twice.output.find("'b' and 'c' are one program"), std::string::npos) << twice.output;
}

TEST(NetdCommandLine, says_what_is_wrong_with_a_sun_rpc_program_to_import) {
  const std::string check = kNetd + " --insecure --udp --address 127.0.0.1 --check --sun-import ";
  for (const std::string wrong : {"files", "files@host", "files@host=", "files@host=0", "@host=5", "files@=5",
                                  "files=5", "files@host:=5", "files@host:0=5", "files@host:65536=5", "files@host=5/x",
                                  "files@host=5,udp", "files@host=5/0", "lrpc.files@host=5", "a@b@host=5"}) {
    const Ran refused = run(check + wrong);
    EXPECT_EQ(refused.status, 1) << wrong;
    EXPECT_NE(refused.output.find("--sun-import: '" + wrong + "': write NAME@HOST"), std::string::npos)
        << refused.output;
  }
  const Ran no_port = run(check + "files@host=5,tcp");
  EXPECT_NE(no_port.output.find("over TCP write the port, too"), std::string::npos) << no_port.output;
  const Ran twice = run(check + "a@host=5 a@other=5 a@host=6");
  EXPECT_NE(twice.output.find("'a@host' is there twice"), std::string::npos) << twice.output;
  EXPECT_EQ(run(check + "a@host=5 a@other:700=0x20000000/7 b@host:7=5,tcp").status, 0);
}

TEST(NetdCommandLine, its_own_graphs_are_right) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string with_keys = "--interface lo --keys " + make_keys(directory);
  for (const std::string options : {"--interface lo --insecure", with_keys.c_str(), "--udp --address 127.0.0.1",
                                    "--interface lo --insecure --sun a=1 b=0x20000000/7 --sun-port 111",
                                    "--interface lo --insecure --sun-import a@10.0.0.1=5 b@10.0.0.1:7=5,tcp",
                                    "--udp --address 127.0.0.1 --sun-import a@10.0.0.1=5 --sun b=5"})
    EXPECT_EQ(run(kNetd + " --check " + options).status, 0) << options;
}

TEST(NetdCommandLine, its_own_graphs_have_sun_rpc_at_all_addresses_unless_one_is_given) {
  const std::string check = kNetd + " --check --udp --insecure --interface lo --sun a=1 --sun-port 7 ";
  const Ran all = run(check);
  EXPECT_NE(all.output.find("UDP(local_port = 7, peer_ports = any)"), std::string::npos) << all.output;
  EXPECT_NE(all.output.find("TCP(port = 7);"), std::string::npos) << all.output;
  const Ran one = run(check + "--address 127.0.0.9");
  EXPECT_NE(one.output.find("UDP(local_port = 7, address = \"127.0.0.9\", peer"), std::string::npos) << one.output;
  EXPECT_NE(one.output.find("TCP(port = 7, address = \"127.0.0.9\");"), std::string::npos) << one.output;
}

TEST(NetdCommandLine, its_own_graphs_give_a_silent_host_as_long_in_a_call_as_between_calls) {
  const Ran ran = run(kNetd + " --check --udp --address 127.0.0.1 --insecure");
  EXPECT_NE(ran.output.find("CHANNEL(give_up = 30s, reply_life = 40s)"), std::string::npos) << ran.output;
}

/// A script passes an empty value if its variable is not set.
TEST(NetdCommandLine, takes_no_default_in_the_place_of_an_empty_value) {
  for (const std::string option :
       {"--graph", "--keys", "--interface", "--address", "--service", "--nameserver", "--state"}) {
    const Ran ran = run(kNetd + " --check --udp --insecure " + option + " ''");
    EXPECT_NE(ran.status, 0) << option;
    EXPECT_NE(ran.output.find(option + ": it is empty"), std::string::npos) << ran.output;
  }
}

TEST(NetdCommandLine, does_not_start_without_keys_unless_told_to) {
  const Ran ran = run(kNetd + " --interface lo");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("say --keys FILE"), std::string::npos) << ran.output;
}

TEST(NetdCommandLine, says_which_user_or_group_it_does_not_know) {
  const std::string start = kNetd + " --udp --address 127.0.0.1 --insecure";
  const Ran user = run(start + " --allow-user no-such-user");
  EXPECT_EQ(user.status, 1);
  EXPECT_NE(user.output.find("there is no user 'no-such-user'"), std::string::npos) << user.output;
  const Ran group = run(start + " --allow-group no-such-group");
  EXPECT_EQ(group.status, 1);
  EXPECT_NE(group.output.find("there is no group 'no-such-group'"), std::string::npos) << group.output;
}

TEST(NetdCommandLine, says_that_there_is_no_ipv6_where_an_address_of_it_is_given) {
  const testing_lrpc::TemporaryDirectory directory;
  const auto told = [](const std::string& command) {
    const Ran ran = run(command);
    EXPECT_EQ(ran.status, 1);
    EXPECT_NE(ran.output.find("looks like an IPv6 address, and there is IPv4 only"), std::string::npos) << ran.output;
  };
  told(kNetd + " --udp --insecure --address fe80::1");
  const std::string keys = (directory.path() / "keys").string();
  std::ofstream(keys) << "2001:db8::/32 " << run(kNetd + " --generate-key").output;
  ASSERT_EQ(::chmod(keys.c_str(), 0600), 0);
  told(kNetd + " --udp --address 127.0.0.1 --keys " + keys);
  const std::string graph = (directory.path() / "graph").string();
  for (const std::string address : {"::1", "[::1]"}) {
    std::ofstream(graph) << "udp = UDP(address = \"" << address
                         << "\"); channel = CHANNEL over udp; select = SELECT over channel;\n";
    told(kNetd + " --sandbox off --graph " + graph);
  }
}

TEST(NetdCommandLine, names_an_address_that_this_machine_does_not_have) {
  const Ran ran = run(kNetd + " --udp --insecure --address 192.0.2.77 --nameserver /nonexistent");
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("udp: this machine has no address 192.0.2.77"), std::string::npos) << ran.output;
}

TEST(NetdCommandLine, refuses_keys_that_others_can_read) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string file = make_keys(directory);
  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  const Ran ran = run(kNetd + " --udp --address 127.0.0.1 --keys " + file);
  EXPECT_EQ(ran.status, 1);
  EXPECT_NE(ran.output.find("chmod 600 " + file), std::string::npos) << ran.output;
}

TEST(NetdCommandLine, checks_keys_as_it_does_when_it_starts) {
  const testing_lrpc::TemporaryDirectory directory;
  const std::string keys = make_keys(directory);
  const std::string graph = (directory.path() / "graph").string();
  const auto write = [&](const std::string& more) {
    std::ofstream(graph) << "udp = UDP(address = \"127.0.0.1\");\nauth = AUTH(keys = \"" << keys << "\"" << more
                         << ") over udp;\nchannel = CHANNEL over auth;\nselect = SELECT over channel;\n";
  };
  const auto refused = [&](const std::string& options, const std::string& why) {
    const Ran checked = run(kNetd + " --check " + options);
    EXPECT_EQ(checked.status, 1) << checked.output;
    EXPECT_NE(checked.output.find(why), std::string::npos) << checked.output;
    const Ran started = run(kNetd + " --sandbox off " + options);
    EXPECT_EQ(started.status, 1) << started.output;
    EXPECT_NE(started.output.find(checked.output), std::string::npos) << started.output;
  };
  const std::string built_in = "--udp --address 127.0.0.1 --keys " + keys;
  write("");
  EXPECT_EQ(run(kNetd + " --check --graph " + graph).status, 0);
  write(", cipher = rot13");
  refused("--graph " + graph, graph + ":2: auth: cipher 'rot13'");
  write("");
  std::ofstream(keys) << "10.0.0.2 c2hvcnQ=\n";
  refused("--graph " + graph, graph + ":2: auth: " + keys + ":1: the key is not 32 bytes");
  refused(built_in, "auth: " + keys + ":1: the key is not 32 bytes");
  EXPECT_EQ(run(kNetd + " --picture text --graph " + graph).status, 0) << "a picture needs no keys";
  ASSERT_EQ(::unlink(keys.c_str()), 0);
  refused("--graph " + graph, graph + ":2: auth: cannot read " + keys);
  refused(built_in, "auth: cannot read " + keys);
}

/// From here on this process and its children cannot use io_uring. False: that could not be arranged.
bool refuse_io_uring() {
  std::array<sock_filter, 4> program{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_setup, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

TEST(NetdCommandLine, says_that_io_uring_is_refused) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!refuse_io_uring()) ::_exit(77);
    const Ran ran = run(kNetd + " --udp --address 127.0.0.1 --insecure --backend io_uring");
    const bool good = ran.status == 1 && ran.output.find("io_uring is not available") != std::string::npos;
    if (!good) std::fprintf(stderr, "status %d: %s\n", ran.status, ran.output.c_str());
    ::_exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "this process may not install a seccomp filter";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace lrpc::netd::test
