// SPDX-License-Identifier: GPL-2.0-or-later

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.MessageDigest;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManagerFactory;

/** Requests of java.net.http on kept connections, each for another node: CA URL 1.2|1.3 REQUESTS SEED; prints as client.go does. */
public class Client {
    static final int[] LENGTHS = {0, 1, 1000, 16384, 16385, 100000, 3000000};

    static byte[] sha256(byte[] data) throws Exception {
        return MessageDigest.getInstance("SHA-256").digest(data);
    }

    /** As web/backend.py has it. */
    static byte[] content(String target, int size) throws Exception {
        byte[] seed = sha256(target.getBytes()), all = new byte[size];
        for (int at = 0; at < size; at += seed.length)
            System.arraycopy(seed, 0, all, at, Math.min(seed.length, size - at));
        return all;
    }

    static SSLContext trusting(String file) throws Exception {
        KeyStore roots = KeyStore.getInstance(KeyStore.getDefaultType());
        roots.load(null, null);
        try (var in = Files.newInputStream(Path.of(file))) {
            roots.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(roots);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }

    public static void main(String[] words) throws Exception {
        SSLParameters parameters = new SSLParameters();
        parameters.setProtocols(new String[] {"TLSv" + words[2]});
        HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).sslContext(trusting(words[0]))
            .sslParameters(parameters).connectTimeout(Duration.ofSeconds(20)).build();
        Random order = new Random(Long.parseLong(words[4]));
        List<String> asked = new ArrayList<>(), answered = new ArrayList<>();
        for (int number = 0; number < Integer.parseInt(words[3]); number++) {
            String node = "n" + (number % 3 + 1);
            int length = LENGTHS[order.nextInt(LENGTHS.length)];
            String target = "/len/" + length + "?" + words[4] + "." + number;
            byte[] right = content(target, length);
            HttpRequest.Builder request = HttpRequest.newBuilder().header("X-To", node).timeout(Duration.ofSeconds(60));
            if (order.nextBoolean()) {
                target = "/upload";
                request.POST(BodyPublishers.ofByteArray(right));
                right = HexFormat.of().formatHex(sha256(right)).getBytes();
            }
            HttpResponse<byte[]> response = client.send(request.uri(URI.create(words[1] + target)).build(), BodyHandlers.ofByteArray());
            if (response.statusCode() != 200 || !Arrays.equals(response.body(), right))
                throw new IllegalStateException(target + ": " + response.statusCode() + ", " + response.body().length + " bytes");
            asked.add(node);
            answered.add(response.headers().firstValue("X-Node").orElse(""));
        }
        System.out.println("{\"asked\": [\"" + String.join("\", \"", asked) + "\"], \"answered\": [\"" + String.join("\", \"", answered) + "\"]}");
    }
}
