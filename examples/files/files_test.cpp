// A tree of files of every size from 0 bytes to 8 MiB (64 MiB in the long form), copied in and out by the real
// programs, by two clients at the same time.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "file_service.h"
#include "length.h"
#include "lrpc/nameserver.h"

namespace {

namespace fs = std::filesystem;

struct Ran {
  int status = -1;
  std::string output;  ///< Standard output and error.
};

/// Runs a program to its end.
Ran run(const std::string& command) {
  Ran ran;
  FILE* pipe = popen((command + " 2>&1").c_str(), "re");
  std::array<char, 4096> chunk{};
  for (std::size_t got = 0; (got = fread(chunk.data(), 1, chunk.size(), pipe)) > 0;)
    ran.output.append(chunk.data(), got);
  ran.status = WEXITSTATUS(pclose(pipe));
  return ran;
}

std::string slurp(const fs::path& path) {
  std::string content(fs::file_size(path), '\0');
  std::ifstream(path, std::ios::binary).read(content.data(), static_cast<std::streamsize>(content.size()));
  return content;
}

/// A hostile server: its directories contain only one name, many times.
class RepetitiveService : public files::FileService {
 public:
  RepetitiveService(files::ConfinedDirectory directory, std::string_view name, std::size_t times)
      : FileService(std::move(directory), true), name_(name), left_(times) {}

  lrpc::Result<::Files::NextResults, ::Files::Refused> Next(lrpc::CallContext& /*call*/, Listing& /*listing*/) {
    ::Files::NextResults found{};
    for (; found.count < found.entries.size() && left_ > 0; --left_) {
      found.entries[found.count].name = name_;
      found.entries[found.count++].stat.kind = ::Files::Kind::Directory;
    }
    return found;
  }

 private:
  std::string_view name_;
  std::size_t left_;
};

class Files : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "lrpc-files-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    fs::create_directories(root_ / "exported");
    socket_ = (root_ / "lrpcd.sock").string();
    auto started =
        lrpc::nameserver::Nameserver::start({.socket_path = socket_, .bind_timeout = std::chrono::minutes(4)});
    ASSERT_TRUE(started) << started.error().message();
    nameserver_ = *std::move(started);
    start_server();
  }
  void TearDown() override {
    stop_server();
    fs::remove_all(root_);
  }

  void start_server(std::vector<std::string> options = {}) {
    std::vector<std::string> arguments{FILES_SERVER, (root_ / "exported").string(), "--nameserver", socket_};
    arguments.insert(arguments.end(), options.begin(), options.end());
    std::vector<char*> argv;
    for (auto& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t quiet;
    posix_spawn_file_actions_init(&quiet);
    posix_spawn_file_actions_addopen(&quiet, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    ASSERT_EQ(posix_spawn(&server_, FILES_SERVER, &quiet, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&quiet);
  }
  void stop_server() {
    if (server_ <= 0) return;
    EXPECT_EQ(client("ls").status, 0);  // the server is up by now, so SIGTERM ends it cleanly
    kill(server_, SIGTERM);
    int status = 0;
    waitpid(server_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the server did not stop cleanly: " << status;
    server_ = 0;
  }
  Ran client(const std::string& arguments) const {
    return run(std::string(FILES_CLIENT) + " --wait 240000 --nameserver " + socket_ + " " + arguments);
  }

  /// Runs the client with a server that lists `name` `times` times.
  Ran client_of_repetitive(const std::string& arguments, std::string_view name, std::size_t times) {
    auto directory = files::ConfinedDirectory::open((root_ / "exported").string());
    if (!directory) return {.status = -1, .output = directory.error().message()};
    RepetitiveService service(*std::move(directory), name, times);
    lrpc::ServerOptions options;
    options.nameserver = socket_;
    lrpc::Server server(options);
    const std::string server_name = "repetitive-" + std::to_string(++repetitive_);
    if (auto exported = ::Files::export_to(server, server_name, service); !exported)
      return {.status = -1, .output = exported.error().message()};
    return client("--name " + server_name + " " + arguments);
  }

  /// Makes files of every size from 0 to the largest, some directories deep, with deterministic content.
  std::map<std::string, std::size_t> make_tree(const fs::path& top) const {
    std::map<std::string, std::size_t> made;
    std::mt19937_64 random(20'240'601);
    std::vector<std::size_t> sizes{0, 1, 2, 63, 64, 65, 1483, 1484, 1485, 4095, 4096, 4097, 65'535, 65'536};
    const std::size_t largest = std::size_t{testing_lrpc::long_tests() ? 64U : 8U} << 20;
    for (std::size_t size = 131'072; size <= largest; size *= 4) {
      sizes.push_back(size - 1);
      sizes.push_back(size);
    }
    sizes.push_back(largest);
    int number = 0;
    for (const std::size_t size : sizes) {
      const std::string name =
          "d" + std::to_string(number % 3) + "/sub/file-" + std::to_string(number) + "-" + std::to_string(size);
      ++number;
      fs::create_directories((top / name).parent_path());
      std::string content(size, '\0');
      for (std::size_t i = 0; i + 8 <= size; i += 8) {
        const std::uint64_t word = random();
        std::memcpy(content.data() + i, &word, 8);
      }
      std::ofstream(top / name, std::ios::binary) << content;
      made[name] = size;
    }
    fs::create_directories(top / "empty-directory");
    return made;
  }
  static void expect_same(const fs::path& a, const fs::path& b, const std::map<std::string, std::size_t>& names) {
    for (const auto& [name, size] : names) {
      ASSERT_EQ(fs::file_size(b / name), size) << name;
      EXPECT_TRUE(slurp(a / name) == slurp(b / name)) << name;
    }
    EXPECT_TRUE(fs::is_directory(b / "empty-directory"));
  }

  fs::path root_;
  std::string socket_;
  std::unique_ptr<lrpc::nameserver::Nameserver> nameserver_;
  pid_t server_ = 0;
  int repetitive_ = 0;  ///< Number of client_of_repetitive()'s servers so far; gives each a unique name.
};

TEST_F(Files, a_tree_of_every_size_goes_in_and_out_unchanged_for_two_clients_at_once) {
  const auto names = make_tree(root_ / "source");
  std::array<Ran, 2> put;
  std::array<Ran, 2> got;
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < 2; ++i) {
    clients.emplace_back([&, i] {
      const std::string copy = "copy" + std::to_string(i);
      put[i] = client("put " + (root_ / "source").string() + " " + copy);
      got[i] = client("get " + copy + " " + (root_ / ("back" + std::to_string(i))).string());
    });
  }
  for (auto& thread : clients) thread.join();
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(put[i].status, 0) << put[i].output;
    EXPECT_EQ(got[i].status, 0) << got[i].output;
    expect_same(root_ / "source", root_ / "exported" / ("copy" + std::to_string(i)), names);
    expect_same(root_ / "source", root_ / ("back" + std::to_string(i)), names);
  }
}

TEST_F(Files, sum_agrees_with_sha256sum) {
  std::ofstream(root_ / "exported" / "a") << std::string(100'000, 'a');
  std::ofstream(root_ / "exported" / "b");  // NOLINT(bugprone-unused-raii): it makes an empty file
  const Ran ours = client("sum");
  const Ran theirs = run("cd " + (root_ / "exported").string() + " && sha256sum a b");
  EXPECT_EQ(ours.status, 0);
  EXPECT_EQ(ours.output, theirs.output);
}

TEST_F(Files, ls_lists_names_kinds_and_sizes) {
  std::ofstream(root_ / "exported" / "some-file") << "12345";
  fs::create_directory(root_ / "exported" / "some-directory");
  for (int i = 0; i < 30; ++i) std::ofstream(root_ / "exported" / ("many" + std::to_string(i)));
  const Ran listed = client("ls");
  EXPECT_EQ(listed.status, 0);
  EXPECT_NE(listed.output.find("           5 some-file\n"), std::string::npos) << listed.output;
  EXPECT_NE(listed.output.find("\nd"), std::string::npos);
  EXPECT_NE(listed.output.find("many29"), std::string::npos);
}

TEST_F(Files, no_path_and_no_link_leads_out_of_the_directory) {
  std::ofstream(root_ / "secret") << "secret";
  fs::create_symlink("../secret", root_ / "exported" / "relative-link");
  fs::create_symlink(root_ / "secret", root_ / "exported" / "absolute-link");
  fs::create_directory_symlink("..", root_ / "exported" / "parent-link");
  std::ofstream(root_ / "exported" / "inside") << "fine";
  fs::create_symlink("inside", root_ / "exported" / "inner-link");
  const std::string out = (root_ / "out").string();
  const std::vector<std::string> ways_out{"../secret",          "relative-link",  "absolute-link",
                                          "parent-link/secret", "x/../../secret", (root_ / "secret").string()};
  for (const std::string& path : ways_out) {
    const Ran got = client("get " + path + " " + out);
    EXPECT_EQ(got.status, 1) << path << ": " << got.output;
    EXPECT_FALSE(fs::exists(out)) << path;
  }
  const std::string why = client("get ../secret " + out).output;
  EXPECT_NE(why.find("out of the exported directory"), std::string::npos) << why;
  EXPECT_EQ(client("put " + (root_ / "secret").string() + " parent-link/planted").status, 1);
  EXPECT_FALSE(fs::exists(root_ / "planted"));
  EXPECT_EQ(client("get inner-link " + out).status, 0) << "a link that stays inside is fine";
  EXPECT_EQ(slurp(out), "fine");
}

TEST_F(Files, a_read_only_export_refuses_changes_with_a_reason) {
  stop_server();
  start_server({"--read-only"});
  std::ofstream(root_ / "local") << "x";
  const Ran put = client("put " + (root_ / "local").string() + " x");
  EXPECT_EQ(put.status, 1);
  EXPECT_NE(put.output.find("Read-only file system"), std::string::npos) << put.output;
  EXPECT_FALSE(fs::exists(root_ / "exported" / "x"));
}

TEST_F(Files, no_name_that_the_server_sends_controls_the_terminal) {
  const std::string name = "\x1b[31mred\n\xc2\x9bm caf\xc3\xa9";
  const std::string shown = "?[31mred?\xc2?m caf\xc3\xa9";
  std::ofstream(root_ / "exported" / name) << "x";
  for (const char* const command : {"ls", "sum"}) {
    const Ran listed = client(command);
    EXPECT_EQ(listed.status, 0);
    EXPECT_TRUE(listed.output.ends_with(" " + shown + "\n")) << listed.output;
  }
  fs::remove(root_ / "exported" / name);
  fs::create_symlink("nowhere", root_ / "exported" / name);
  const Ran got = client("get . " + (root_ / "out").string());
  EXPECT_EQ(got.output, shown + ": neither file nor directory, left out\n0 files\n");
}

TEST_F(Files, a_directory_has_at_most_65536_entries) {
  EXPECT_EQ(client_of_repetitive("ls", "name", 65'536).status, 0);
  const Ran listed = client_of_repetitive("ls", "name", 65'537);
  EXPECT_EQ(listed.status, 1);
  EXPECT_EQ(listed.output, "lrpc-files: : more than 65536 entries\n");
}

TEST_F(Files, directories_lie_at_most_32_deep_within_each_other) {
  fs::path deep = root_ / "exported";
  for (int depth = 0; depth < 33; ++depth) deep /= "d";
  fs::create_directories(deep.parent_path());
  EXPECT_EQ(client("sum").status, 0);
  fs::create_directory(deep);
  for (const std::string& command : {std::string("sum"), "get . " + (root_ / "out").string()}) {
    const Ran refused = client(command);
    EXPECT_EQ(refused.status, 1) << command;
    EXPECT_NE(refused.output.find("more than 32 directories within each other"), std::string::npos) << refused.output;
  }
}

TEST_F(Files, a_name_that_leads_back_to_its_directory_is_refused) {
  for (const std::string_view name : {".", "", "..", "a/b"}) {
    const Ran summed = client_of_repetitive("sum", name, 1);
    EXPECT_EQ(summed.status, 1) << name;
    EXPECT_NE(summed.output.find("the server sent a bad name"), std::string::npos) << summed.output;
  }
}

TEST_F(Files, a_listing_that_cannot_be_printed_ends_with_1) {
  std::ofstream(root_ / "exported" / "some-file") << "12345";
  EXPECT_EQ(client("ls >/dev/full").status, 1);
}

TEST_F(Files, missing_files_names_and_nameservers_are_clear_errors) {
  EXPECT_NE(client("get nothing " + (root_ / "x").string()).output.find("No such file or directory"),
            std::string::npos);
  const Ran unknown = run(std::string(FILES_CLIENT) + " --nameserver " + socket_ + " --name other ls");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_NE(unknown.output.find("other"), std::string::npos);
  const Ran nobody = run(std::string(FILES_CLIENT) + " --nameserver /nonexistent/sock ls");
  EXPECT_EQ(nobody.status, 1);
  EXPECT_NE(nobody.output.find("/nonexistent/sock"), std::string::npos) << nobody.output;
}

}  // namespace
